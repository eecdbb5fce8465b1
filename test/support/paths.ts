import { fileURLToPath } from 'node:url'

// The runs of test/faults are compiled to test/faults/dist, with this folder beside them, and lie two folders deeper there.
const depth = import.meta.url.endsWith('.ts') ? '../..' : '../../../..'

/** The folder of the clone; ends in a slash. */
export const root = fileURLToPath(new URL(`${depth}/`, import.meta.url))

/** The program as users run it; its dist/ has to be there. */
export const program = `${root}packages/rejoin/bin/rejoin.js`

/** The compiled form of a module below test/, for a process of its own: `builtModule('faults/hubs/hub-process.ts')`. */
export function builtModule(path: string): string {
  return `${root}test/faults/dist/${path.replace(/\.ts$/, '.js')}`
}
