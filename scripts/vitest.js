import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { setPriority, tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { root } from './compile.js'

/**
 * @typedef {object} Tally
 * @property {number} passed
 * @property {string[]} failed what failed, with its file
 * @property {string[]} skipped the tests that did not run, with their files
 * @property {FileTime[]} files how long each file of tests took
 */

/**
 * @typedef {{ file: string, ms: number }} FileTime
 *
 * The part of vitest's JSON report that is read here.
 * @typedef {{ testResults: FileReport[] }} Report
 * @typedef {{ name: string, status: string, startTime: number, endTime: number, assertionResults: { status: string, fullName: string }[] }} FileReport
 */

/**
 * Runs projects of vitest.config.ts on the terminal and adds up their report.
 * @param {string[]} projects
 * @param {string[]} args files, or options of vitest
 * @returns {Tally}
 */
export function vitest(projects, args = []) {
  const folder = mkdtempSync(join(tmpdir(), 'rejoin-report-'))
  const report = join(folder, 'report.json')
  try {
    const status = runVitest(argsOf(projects, report, args))
    return addUp(readReport(report), status)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/**
 * The same beside other runs, with what these leave of the processor. It prints nothing until its result is asked for.
 * @param {string[]} projects
 * @param {string[]} args files, or options of vitest
 * @returns {() => Promise<Tally>}
 */
export function vitestBeside(projects, args = []) {
  const folder = mkdtempSync(join(tmpdir(), 'rejoin-report-'))
  const report = join(folder, 'report.json')
  const output = openSync(join(folder, 'output'), 'w')
  const words = [program, 'run', ...argsOf(projects, report, args)]
  const child = spawn(process.execPath, words, { cwd: root, stdio: ['ignore', output, output] })
  closeSync(output)
  // Its workers inherit this. A quarter of a core is theirs even when the others have no rest.
  if (child.pid !== undefined) setPriority(child.pid, 5)
  const ended = once(child, 'exit')
  process.once('exit', () => child.kill())
  return async () => {
    const [status] = await ended
    process.stdout.write(readFileSync(join(folder, 'output')))
    const tally = addUp(readReport(report), status)
    rmSync(folder, { recursive: true })
    return tally
  }
}

/**
 * @param {string[]} projects
 * @param {string} report
 * @param {string[]} args
 */
function argsOf(projects, report, args) {
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  return [...projects.map((project) => `--project=${project}`), ...reporters, ...args]
}

const program = join(root, 'node_modules/vitest/vitest.mjs')

/**
 * @param {string[]} args
 * @param {{ node?: string, env?: NodeJS.ProcessEnv }} [runtime] another Node than this one
 */
export function runVitest(args, { node = process.execPath, env = process.env } = {}) {
  return spawnSync(node, [program, 'run', ...args], { cwd: root, env, stdio: 'inherit' }).status
}

/**
 * @param {string} file
 * @returns {Report | undefined}
 */
function readReport(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    // A run that crashed leaves no report, or half of one; its exit status tells the rest.
    return undefined
  }
}

/**
 * @param {Report | undefined} report
 * @param {number | null} status
 */
function addUp(report, status) {
  /** @type {Tally} */
  const tally = { passed: 0, failed: [], skipped: [], files: [] }
  for (const { name, status, startTime, endTime, assertionResults } of report?.testResults ?? []) {
    const file = relative(root, name)
    const before = tally.failed.length
    tally.files.push({ file, ms: endTime - startTime })
    for (const { status, fullName } of assertionResults) {
      if (status === 'passed') tally.passed += 1
      else if (status === 'failed') tally.failed.push(`${fullName} (${file})`)
      else tally.skipped.push(`${fullName} (${file})`)
    }
    // A file that cannot be loaded, or whose hooks throw, has failed without a failed test.
    if (status === 'failed' && tally.failed.length === before) tally.failed.push(`${file} as a whole`)
  }
  // So has a run that crashed, or that met an unhandled error.
  if (tally.failed.length === 0 && (status !== 0 || report === undefined)) tally.failed.push('vitest itself')
  return tally
}
