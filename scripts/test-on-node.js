// `npm run test:node -- 24` runs the unit tests on another major version of Node.
import { spawnSync } from 'node:child_process'
import { delimiter, join } from 'node:path'
import { provide } from './npm-cache.js'
import { runVitest } from './vitest.js'

const projects = ['unit', 'unit-alone', 'long', 'long-alone'].map((project) => `--project=${project}`)
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
  process.exitCode = runVitest(projects, { node, env }) ?? 1
  if (process.exitCode === 0) console.log(`The unit tests pass on Node ${version}.`)
}

/**
 * npm's `node` package needs an install script; the package of one platform is just the files.
 * @param {string} major
 * @returns {string} the folder that holds `node`
 */
function provideNode(major) {
  const name = `node-${process.platform}-${process.arch}`
  return join(provide(`node/${major}`, [`${name}@${major}`]), 'node_modules', name, 'bin')
}
