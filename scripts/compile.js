import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { embedLua } from './lua.js'

export const root = fileURLToPath(new URL('..', import.meta.url))

const packages = ['protocol', 'hub', 'client', 'mdns', 'doctor', 'storm', 'rejoin']

/**
 * Brings the given projects, and what they refer to, up to date. Nothing is printed and little is done when they are;
 * errors go to the terminal.
 * @param {string} project a folder with a tsconfig.json; '.' stands for everything
 * @returns {Promise<boolean>} whether the code compiles
 */
export async function compile(project) {
  forgetRemovedOutput()
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const [code] = await once(spawn(process.execPath, [tsc, '-b', project], { cwd: root, stdio: 'inherit' }), 'exit')
  embedLua(join(root, 'packages/hub'))
  return code === 0
}

/** tsc asks its .tsbuildinfo alone what is stale, so a package whose dist/ was deleted would count as built. */
function forgetRemovedOutput() {
  for (const name of packages) {
    const folder = join(root, 'packages', name)
    if (!existsSync(join(folder, 'dist'))) rmSync(join(folder, 'tsconfig.tsbuildinfo'), { force: true })
  }
}
