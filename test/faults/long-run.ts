import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { checkHistory, fileSource, formatReport, type Report } from './checker/checker.ts'
import type { Spread } from './checker/tally.ts'
import { type History, openHistory } from './history/history.ts'

/**
 * A run from the terminal: reads its options, prints its inputs, writes its history to a file, and ends with the verdict
 * and an exit code. The history of a run that passed is deleted, unless `--keep` is given.
 */
export async function longRun<Inputs extends Record<string, number>>({ name, inputs: defaults, run }: LongRun<Inputs>) {
  const { inputs, keep, progress } = announceRun(name, defaults)
  const folder = mkdtempSync(join(tmpdir(), `rejoin-${name}-`))
  const file = join(folder, 'history.jsonl')
  const history = openHistory(file)
  await run(inputs, history, progress, folder)
  history.close()
  progress('over, now the checker\n')
  const report = judge(file)
  if (report.passed && !keep) rmSync(folder, { recursive: true })
  else console.log(`History: ${file}. Repeat with: npm run faults -- ${name} --seed ${inputs.seed}`)
}

/** Reads the options of a run and prints them, with the machine it runs on. */
export function announceRun<Inputs extends Record<string, number>>(
  name: string,
  defaults: Inputs,
): AnnouncedRun<Inputs> {
  const given = readInputs({ seed: Math.floor(Math.random() * 1_000_000), ...defaults })
  const options = Object.entries(given.inputs).map(([input, value]) => `--${input} ${value}`)
  console.log(`${name}: ${options.join(' ')}`)
  console.log(`${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}, node ${process.version}`)
  const started = performance.now()
  return {
    inputs: given.inputs as Inputs & { seed: number },
    keep: given.keep,
    progress: (text) => console.log(`${((performance.now() - started) / 1000).toFixed(0).padStart(4)} s  ${text}`),
  }
}

/** Times as text. */
export function formatSpread(values: Spread | undefined): string {
  if (!values) return 'not measured'
  return `median ${values.median.toFixed(0)}, p99 ${values.p99.toFixed(0)}, longest ${values.longest.toFixed(0)} ms`
}

/** Prints the verdict on a history and sets the exit code. */
export function judge(...files: string[]): Report {
  const report = checkHistory(files.map(fileSource))
  console.log(formatReport(report))
  if (!report.passed) process.exitCode = 1
  return report
}

export interface LongRun<Inputs> {
  readonly name: string
  /** Options of the run, with their defaults. */
  readonly inputs: Inputs
  /** `folder` is deleted with the history. */
  run(
    inputs: Inputs & { seed: number },
    history: History,
    progress: (text: string) => void,
    folder: string,
  ): Promise<void>
}

export interface AnnouncedRun<Inputs> {
  readonly inputs: Inputs & { seed: number }
  readonly keep: boolean
  progress(text: string): void
}

function readInputs(defaults: Record<string, number>): { inputs: Record<string, number>; keep: boolean } {
  const names = Object.keys(defaults)
  const { values } = parseArgs({
    options: {
      keep: { type: 'boolean' },
      ...Object.fromEntries(names.map((name) => [name, { type: 'string' }] as const)),
    },
  })
  const inputs = names.map((name) => {
    const text = (values as Record<string, string | undefined>)[name]
    const value = text === undefined ? defaults[name] : Number(text)
    if (value === undefined || !(value >= 0)) throw new Error(`--${name} is ${text}. Give a number from 0 up.`)
    return [name, value] as const
  })
  return { inputs: Object.fromEntries(inputs), keep: values.keep === true }
}
