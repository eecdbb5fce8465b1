// `npm run test:node -- 24` runs the unit tests on another major version of Node.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { root } from './compile.js'
import { runVitest } from './vitest.js'

const major = process.argv[2] ?? ''

if (!/^\d+$/.test(major)) {
  console.error('usage: npm run test:node -- <major version>, for example: npm run test:node -- 24')
  process.exitCode = 1
} else {
  const bin = provideNode(major)
  const node = join(bin, 'node')
  const version = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim()
  console.log(`Unit tests on Node ${version} (${node}), not on ${process.version}.`)
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH ?? ''}` }
  process.exitCode = runVitest(['--project=unit'], { node, env }) ?? 1
  if (process.exitCode === 0) console.log(`The unit tests pass on Node ${version}.`)
}

/**
 * npm's `node` package needs an install script; the package of one platform is just the files.
 * @param {string} major
 * @returns {string} the folder that holds `node`
 */
function provideNode(major) {
  const name = `node-${process.platform}-${process.arch}`
  const folder = join(root, 'node_modules/.cache/rejoin/node', major)
  const bin = join(folder, 'node_modules', name, 'bin')
  if (existsSync(join(bin, 'node'))) return bin
  console.log(`Fetching ${name}@${major} from npm into ${folder}`)
  mkdirSync(folder, { recursive: true })
  // npm walks up to the next package.json to find where to install.
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  const npm = spawnSync('npm', ['install', '--no-save', '--no-package-lock', `${name}@${major}`], {
    cwd: folder,
    stdio: 'inherit',
  })
  if (npm.status !== 0) process.exit(1)
  return bin
}
