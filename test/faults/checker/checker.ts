import { closeSync, openSync, readSync } from 'node:fs'
import { StringDecoder } from 'node:string_decoder'
import type { Line } from '../history/history.ts'
import { findMemoryOverruns, measureCatchUp } from './budgets.ts'
import { findMissing } from './delivery.ts'
import { findTornFrames } from './frames.ts'
import { type Growth, growthText, measureGrowth } from './growth.ts'
import { findIdFaults } from './ids.ts'
import { type Finding, type Invariant, invariants, type LineNumber } from './invariants.ts'
import { createLedger } from './ledger.ts'
import { createLosses } from './losses.ts'
import { findInversions } from './order.ts'
import { createPrecedence } from './precedence.ts'
import { judgeGaps } from './retention.ts'
import { findLeaks } from './rights.ts'
import { type Spread, spreadOf, type Tally, tallyOf } from './tally.ts'

/**
 * Judges a history, offline and from its lines alone. It shares no code with what it judges, so a mistake in the hub or
 * the client cannot hide itself here.
 */
export function checkHistory(sources: readonly Source[]): Report {
  const ledger = readLedger(sources)
  const losses = createLosses(ledger)
  const precedence = createPrecedence(ledger, losses)
  const gaps = judgeGaps(ledger, precedence)
  const catchUp = measureCatchUp(ledger)
  const { findings: grown, growth } = measureGrowth(ledger)
  const findings = [
    ...findMissing(ledger, precedence, losses),
    ...losses.findUntold(),
    ...gaps.findings,
    ...findInversions(ledger, losses),
    ...findIdFaults(ledger, losses),
    ...findLeaks(ledger),
    ...findTornFrames(ledger),
    ...findMemoryOverruns(ledger),
    ...grown,
    ...catchUp.findings,
  ]
  const counts = Object.fromEntries(Object.keys(invariants).map((name) => [name, 0])) as Record<Invariant, number>
  for (const { invariant, count } of findings) counts[invariant] += count
  return {
    passed: findings.length === 0,
    counts,
    violations: withEvidence(findings, sources),
    tally: { ...tallyOf(ledger), unjudgedGaps: gaps.unjudged, catchUpMs: spreadOf(catchUp.times), growth },
  }
}

/** Lines that can be read more than once: first to judge, then to quote. */
export interface Source {
  readonly name: string
  lines(): Iterable<string>
}

export interface Report {
  readonly passed: boolean
  /** Per invariant, how many events, ids or moments break it. */
  readonly counts: Readonly<Record<Invariant, number>>
  readonly violations: readonly Violation[]
  readonly tally: Tally & {
    /** Announced gaps that no `window` line allows to judge. */
    readonly unjudgedGaps: number
    readonly catchUpMs: Spread | undefined
    /** Undefined in a history whose budget does not ask for it. */
    readonly growth: Growth | undefined
  }
}

export interface Violation {
  readonly invariant: Invariant
  readonly message: string
  readonly evidence: readonly Evidence[]
}

export interface Evidence {
  /** Source and number of the line, counted from 1. */
  readonly where: string
  readonly text: string
}

export function linesSource(name: string, lines: readonly string[]): Source {
  return { name, lines: () => lines }
}

export function fileSource(path: string): Source {
  return { name: path, lines: () => readLines(path) }
}

/** The verdict as text: a line per invariant, what was looked at, and the evidence. */
export function formatReport(report: Report, { maxViolations = 10 } = {}): string {
  const { tally } = report
  const spread = (values: Spread | undefined) =>
    values
      ? `median ${values.median.toFixed(0)}, p99 ${values.p99.toFixed(0)}, longest ${values.longest.toFixed(0)} ms`
      : 'not measured'
  const shown = report.violations.slice(0, maxViolations)
  const more = report.violations.length - shown.length
  return [
    ...Object.entries(report.counts).map(([name, count]) => `${count === 0 ? ' ' : '✗'} ${name.padEnd(16)} ${count}`),
    '',
    `publishes    ${tally.acknowledged} acknowledged, ${tally.rejected} rejected, ${tally.unanswered} unanswered`,
    `readers      ${tally.readers} with ${tally.receipts} receipts, ${tally.repeats} repeats`,
    `connections  ${tally.connections} asked for, ${tally.streams} answered, ${tally.cutFrames} cut inside a frame`,
    `wire         ${tally.repeatedFrames} frames beyond one for each receipt`,
    `faults       ${tally.faults}`,
    `gaps         ${tally.gaps} announced, ${tally.unjudgedGaps} of them without facts to judge by`,
    `resume       ${spread(tally.resumeMs)}`,
    `over retry   ${spread(tally.overRetryMs)}, after streams of 5 s and more`,
    `catch-up     ${spread(tally.catchUpMs)}`,
    ...(tally.growth ? [`rest         ${growthText(tally.growth)}`] : []),
    ...(tally.judgedToTheEnd
      ? []
      : ['The history has no quiet end, so that nobody can be said to miss the last events.']),
    ...shown.flatMap(({ invariant, message, evidence }) => [
      '',
      `${invariant}: ${message}`,
      ...evidence.map(({ where, text }) => `  ${where}: ${text}`),
    ]),
    ...(more > 0 ? ['', `… and ${more} more`] : []),
    '',
    report.passed ? 'The promise holds.' : 'The promise is broken.',
  ].join('\n')
}

function readLedger(sources: readonly Source[]) {
  const builder = createLedger()
  let number = 0
  for (const source of sources) {
    let inSource = 0
    for (const text of source.lines()) {
      inSource += 1
      builder.add(parseLine(text, `${source.name}:${inSource}`), number)
      number += 1
    }
  }
  return builder.finish()
}

/** A history with a broken line proves nothing, so that reading stops here instead of passing over it. */
function parseLine(text: string, where: string): Line {
  let line: Partial<Line> | null
  try {
    line = JSON.parse(text)
  } catch (cause) {
    throw new Error(`${where} is not JSON: ${text.slice(0, 80)}`, { cause })
  }
  if (typeof line?.kind !== 'string' || typeof line.t !== 'number') {
    throw new Error(`${where} has no "kind" or no "t": ${text.slice(0, 80)}`)
  }
  if (!kinds.has(line.kind)) throw new Error(`${where} is of an unknown kind: ${line.kind}`)
  return line as Line
}

// As a record, so that the compiler asks for every kind.
const everyKind: Record<Line['kind'], true> = {
  ...{ invoke: true, ok: true, fail: true, unknown: true },
  ...{ reader: true, connect: true, open: true, recv: true, mark: true, gap: true },
  ...{ malformed: true, close: true, allow: true, end: true },
  ...{ run: true, window: true, trim: true, branch: true, branched: true, invalidate: true, ids: true },
  ...{ fault: true, heal: true, quiet: true, waited: true, budget: true, memory: true, rest: true },
}
const kinds = new Set(Object.keys(everyKind))

/** Quotes the lines of at most so many findings; the counts have all of them. */
const maxQuoted = 200

function withEvidence(findings: readonly Finding[], sources: readonly Source[]): Violation[] {
  const quoted = findings.slice(0, maxQuoted)
  const wanted = new Set(quoted.flatMap((finding) => finding.lines))
  const found = new Map<LineNumber, Evidence>()
  let number = 0
  for (const source of wanted.size === 0 ? [] : sources) {
    let inSource = 0
    for (const text of source.lines()) {
      inSource += 1
      if (wanted.has(number)) found.set(number, { where: `${source.name}:${inSource}`, text })
      number += 1
    }
  }
  return findings.map(({ invariant, message, lines }) => ({
    invariant,
    message,
    evidence: [...new Set(lines)].flatMap((line) => found.get(line) ?? []),
  }))
}

function* readLines(path: string): Generator<string> {
  const descriptor = openSync(path, 'r')
  const decoder = new StringDecoder('utf8')
  const buffer = Buffer.allocUnsafe(1 << 20)
  let rest = ''
  try {
    for (;;) {
      const length = readSync(descriptor, buffer)
      if (length === 0) break
      const lines = (rest + decoder.write(buffer.subarray(0, length))).split('\n')
      rest = lines.pop() ?? ''
      yield* lines
    }
  } finally {
    closeSync(descriptor)
  }
  if (rest !== '') yield rest
}
