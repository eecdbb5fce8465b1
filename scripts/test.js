// `npm test`: first what is quick to fail; then everything else, and the tests that use real services as far as those are there.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { compile, root } from './compile.js'
import { install, mayInstall } from './debian.js'
import { debianPackages, installCommand, isNeededBy, isPresent, luacheck, services } from './services.js'
import { vitest, vitestBeside } from './vitest.js'

/** @typedef {import('./vitest.js').Tally} Tally */
/** @typedef {import('./services.js').Service} Service */

const started = performance.now()
let passed = 0
/** @type {string[]} */
const failures = []
/** @type {string[]} */
const skips = []
/** @type {import('./vitest.js').FileTime[]} */
const times = []

const unchecked = provideServices([luacheck])
await step('lint', () => single('lint', lint()))
await step('types and build', async () => single('types and build', await compile('.')))
await step('unit tests', () => vitest(['unit', 'unit-alone']))
const files = serviceTests()
const needed = services.filter((service) => files.some((file) => isNeededBy(service, file)))
const missing = [...unchecked, ...provideServices(needed)]
const runnable = files.filter((file) => !missing.some((service) => isNeededBy(service, file)))
// They wait for nothing and hold nothing to a time: they take what the tests beside them leave of the processor.
const simulations = vitestBeside(['simulation'], ['--maxWorkers=1'])
// Vitest is given the folders of the core as well: it leaves out everything that it is not given.
const given = ['packages/', 'examples/', 'test/package/', 'test/faults/', 'test/support/', ...runnable]
const units = ['long', 'long-alone', 'frameworks', 'older-frameworks']
// In one run, so that only its end leaves cores idle.
await step('long unit tests, packages, faults and services', () =>
  vitest([...units, 'package', 'examples', 'faults', 'services'], given),
)
await step('simulations', simulations)
// Tests against the clock of the machine run one file after another: side by side they would take each other's processor.
await step('faults and services alone', () =>
  vitest(['faults-alone', 'services-alone'], ['--no-file-parallelism', ...given]),
)
for (const file of files.filter((file) => !runnable.includes(file))) {
  const names = missing.filter((service) => isNeededBy(service, file)).map((service) => service.name)
  skips.push(`${file} (needs ${names.join(' and ')})`)
}
for (const { name } of unchecked) skips.push(`lint of the script for Redis (needs ${name})`)

report()

/**
 * @param {string} name
 * @param {() => Tally | Promise<Tally>} run
 */
async function step(name, run) {
  console.log(`\n── ${name}`)
  const before = performance.now()
  const tally = await run()
  passed += tally.passed
  failures.push(...tally.failed)
  skips.push(...tally.skipped)
  times.push(...tally.files)
  console.log(`── ${name}: ${tally.passed} passed, ${tally.failed.length} failed, ${seconds(before)}`)
}

/**
 * @param {string} name
 * @param {boolean} passed
 * @returns {Tally}
 */
function single(name, passed) {
  return { passed: passed ? 1 : 0, failed: passed ? [] : [name], skipped: [], files: [] }
}

function lint() {
  return spawnSync('npm', ['run', '--silent', 'lint'], { cwd: root, stdio: 'inherit' }).status === 0
}

function serviceTests() {
  const folders = ['test/services', 'test/browser'].filter((folder) => existsSync(join(root, folder)))
  return folders.flatMap((folder) => {
    const entries = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    return entries.filter((entry) => entry.endsWith('.test.ts')).map((entry) => `${folder}/${entry}`)
  })
}

/**
 * @param {Service[]} needed
 * @returns {Service[]} those that are still missing
 */
function provideServices(needed) {
  const absent = needed.filter((service) => !isPresent(service))
  if (absent.length === 0 || !mayInstall()) return absent
  const before = performance.now()
  const installed = install(debianPackages(absent))
  console.log(`── install: ${installed ? 'done' : 'failed'}, ${seconds(before)}`)
  return absent.filter((service) => !isPresent(service))
}

function report() {
  const skipIsFailure = process.env.CI === 'true'
  console.log(`\nAll of it took ${seconds(started)}. The slowest files:`)
  const slowest = times.sort((a, b) => b.ms - a.ms).slice(0, 10)
  for (const { file, ms } of slowest) console.log(`  ${(ms / 1000).toFixed(1).padStart(6)} s  ${file}`)
  // Named once more at the end: the place where it failed is thousands of lines up, or no longer kept.
  list('Failed:', failures)
  list(skipIsFailure ? 'Skipped, which is a failure with CI=true:' : 'Skipped:', skips)
  if (missing.length > 0) console.log(`To add what is missing: ${installCommand(missing)}`)
  const failed = failures.length + (skipIsFailure ? skips.length : 0)
  const skipped = skipIsFailure ? 0 : skips.length
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`)
  process.exitCode = failed > 0 ? 1 : 0
}

/**
 * @param {string} title
 * @param {string[]} names
 */
function list(title, names) {
  if (names.length > 0) console.log([title, ...names.map((name) => `  ${name}`)].join('\n'))
}

/** @param {number} since */
function seconds(since) {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`
}
