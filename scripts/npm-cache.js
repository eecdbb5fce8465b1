import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './compile.js'

/**
 * Fetches packages that are too large to be installed with the rest, once. They stay until node_modules is removed.
 * @param {string} name of the folder
 * @param {string[]} packages as npm takes them, with their versions
 * @returns {string} the folder; the packages are in its node_modules
 */
export function provide(name, packages) {
  const folder = join(root, 'node_modules/.cache/rejoin', name)
  const done = join(folder, `${packages.join(' ').replaceAll('/', '_')}.done`)
  if (existsSync(done)) return folder
  console.log(`Fetching ${packages.join(' ')} from npm into ${folder}`)
  mkdirSync(folder, { recursive: true })
  // npm walks up to the next package.json to find where to install.
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n')
  const args = ['install', '--no-save', '--no-package-lock', ...packages]
  const npm = spawnSync('npm', args, { cwd: folder, stdio: 'inherit' })
  if (npm.status !== 0) throw new Error(`npm could not fetch ${packages.join(' ')}.`)
  writeFileSync(done, '')
  return folder
}
