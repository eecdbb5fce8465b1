import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/**
 * Tests of the packed packages, of the program, of the browser and of processes that are killed use dist/; a stale one
 * would test yesterday. A type error is printed but does not stop them: tsc emits all the same, and `npm test` has counted
 * it.
 */
export function setup(): void {
  const root = fileURLToPath(new URL('..', import.meta.url))
  for (const project of ['packages/rejoin', 'test/faults']) {
    spawnSync(process.execPath, ['scripts/build.js', project], { cwd: root, stdio: 'inherit' })
  }
}
