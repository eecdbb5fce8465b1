import { spawnSync } from 'node:child_process'
import { loadavg } from 'node:os'
import { machine, printTable } from './measure.ts'
import { canPin, cores } from './processes/cores.ts'

/** One figure, with the bar it is held to, if any. */
export interface Figure {
  readonly what: string
  /** Undefined when it could not be measured; `note` says why. */
  readonly value: number | undefined
  readonly unit: string
  readonly atMost?: number
  readonly atLeast?: number
  readonly note?: string
}

export interface Report {
  readonly bench: string
  readonly inputs: Readonly<Record<string, string | number>>
  readonly figures: readonly Figure[]
  /** What the figures were computed from. */
  readonly details: readonly Readonly<Record<string, string | number>>[]
}

/** Load average when the bench started: what else the machine was doing. */
const loadBefore = loadavg()[0]!

/** Prints the figures as a table, or as JSON with `--json`. A missed bar makes the exit code 1. */
export function report({ bench, inputs, figures, details }: Report): void {
  const around = {
    machine: machine(),
    pinned: canPin()
      ? `server on core ${cores.server}, load client on core ${cores.load} (taskset)`
      : 'no: taskset not present',
    loadBefore: loadBefore.toFixed(2),
    commit: commit(),
    date: new Date().toISOString(),
  }
  if (process.argv.includes('--json')) {
    const judged = figures.map((figure) => ({ ...figure, met: isMet(figure) }))
    console.log(JSON.stringify({ bench, ...around, inputs, figures: judged, details }, null, 2))
  } else {
    printTable(details.map((detail) => mapValues(detail, shown)))
    console.log()
    printTable(figures.map(inWords))
    console.log()
    for (const [name, value] of Object.entries({ ...inputs, ...around })) console.log(`${name}: ${value}`)
  }
  if (figures.some((figure) => isMet(figure) === false)) process.exitCode = 1
}

function inWords(figure: Figure) {
  const { what, value, unit, atMost, atLeast, note } = figure
  const bar = [atMost === undefined ? '' : `≤ ${atMost} ${unit}`, atLeast === undefined ? '' : `≥ ${atLeast} ${unit}`]
  const met = isMet(figure)
  return {
    what,
    measured: value === undefined ? 'not measured' : `${shown(value)} ${unit}`,
    bar: bar.join(''),
    met: met === undefined ? '' : met,
    note: note ?? '',
  }
}

/** Undefined when there is no bar, or nothing to hold to it. */
function isMet({ value, atMost, atLeast }: Figure): boolean | undefined {
  if (value === undefined || (atMost === undefined && atLeast === undefined)) return undefined
  return value <= (atMost ?? Number.POSITIVE_INFINITY) && value >= (atLeast ?? Number.NEGATIVE_INFINITY)
}

/** Three digits are more than such a measurement is good for. */
function shown(value: string | number): string {
  if (typeof value === 'string') return value
  if (value === 0 || Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-US')
  return value.toPrecision(3)
}

function mapValues<From, To>(record: Readonly<Record<string, From>>, change: (value: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]))
}

function commit(): string {
  const git = (...args: string[]) => spawnSync('git', args, { encoding: 'utf8' }).stdout?.trim() ?? ''
  const changed = git('status', '--porcelain', 'packages', 'bench') === '' ? '' : ' with changes'
  return `${git('rev-parse', '--short', 'HEAD')}${changed}`
}
