import { isAcked, type Ledger, mayExist } from './ledger.ts'
import { countAtMost } from './precedence.ts'

/** What a history holds, so that a verdict of "nothing found" can be told from "nothing looked at". */
export function tallyOf(ledger: Ledger): Tally {
  const { publishes, readers } = ledger
  const sum = (of: (reader: Ledger['readers'][number]) => number) =>
    readers.reduce((total, each) => total + of(each), 0)
  return {
    acknowledged: publishes.filter(isAcked).length,
    rejected: publishes.filter((publish) => !mayExist(publish)).length,
    unanswered: publishes.filter((publish) => !isAcked(publish) && mayExist(publish)).length,
    readers: readers.length,
    receipts: sum((reader) => reader.receipts.t.length),
    repeats: sum((reader) => reader.repeats.length),
    repeatedFrames: sum(repeatedFrames),
    connections: sum((reader) => reader.connects.length),
    streams: sum((reader) => reader.opens.length),
    cutFrames: sum((reader) => reader.closes.filter((close) => close.partial !== undefined).length),
    gaps: sum((reader) => reader.gaps.length),
    faults: ledger.facts('fault').length,
    judgedToTheEnd: ledger.facts('quiet').length > 0,
    resumeMs: spreadOf(readers.flatMap(resumeTimes)),
    overRetryMs: spreadOf(readers.flatMap(timesOverRetry)),
  }
}

export interface Tally {
  readonly acknowledged: number
  readonly rejected: number
  readonly unanswered: number
  readonly readers: number
  /** Events handed to readers, each counted once per reader. */
  readonly receipts: number
  /** Events handed to a reader again. */
  readonly repeats: number
  /** Event frames on the wire beyond one for each receipt: what dedup had to drop, or a cut kept from the reader. */
  readonly repeatedFrames: number
  readonly connections: number
  /** Connections on which the hub answered. */
  readonly streams: number
  /** Connections that ended inside a frame. */
  readonly cutFrames: number
  readonly gaps: number
  readonly faults: number
  /** Whether there was a quiet end, without which nobody can be said to miss the last events. */
  readonly judgedToTheEnd: boolean
  /** From the end of a stream to the next one. */
  readonly resumeMs: Spread | undefined
  /**
   * How much longer that was than the hub had asked for; of streams that had brought events for five seconds, and were
   * followed by another with the first attempt. After others a reader waits longer on purpose.
   */
  readonly overRetryMs: Spread | undefined
}

export interface Spread {
  readonly median: number
  readonly p99: number
  readonly longest: number
}

export function spreadOf(values: readonly number[]): Spread | undefined {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (part: number) => sorted[Math.min(Math.floor(sorted.length * part), sorted.length - 1)]
  const [median, p99, longest] = [at(0.5), at(0.99), at(1)]
  return median === undefined || p99 === undefined || longest === undefined ? undefined : { median, p99, longest }
}

function repeatedFrames({ closes, receipts }: Ledger['readers'][number]): number {
  const frames = closes.reduce((total, close) => total + (close.frames ?? 0), 0)
  return Math.max(frames - receipts.t.length, 0)
}

function resumeTimes(reader: Ledger['readers'][number]): number[] {
  return returnsOf(reader).map(({ open, lost }) => open.t - lost.t)
}

const lastingMs = 5000

function timesOverRetry(reader: Ledger['readers'][number]): number[] {
  return returnsOf(reader).flatMap(({ before, lost, open }) => {
    const attempts = reader.connects.filter(({ number }) => number > lost.number && number < open.number)
    // Up to the last event: what follows in a line that hangs is not life.
    const last = reader.receipts.t[countAtMost(reader.receipts.line, lost.number) - 1] ?? before.t
    if (lost.retryMs === undefined || attempts.length !== 1 || last - before.t < lastingMs) return []
    return [Math.max(open.t - lost.t - lost.retryMs, 0)]
  })
}

/** Each stream but the first, the one before it, and the end of that. */
function returnsOf({ closes, opens }: Ledger['readers'][number]) {
  return opens.flatMap((open, index) => {
    const before = opens[index - 1]
    // Of several attempts, the wait began with the end of the last stream, not with that of a failed attempt.
    const lost = before && closes.find((close) => close.number > before.number)
    return before && lost ? [{ before, lost, open }] : []
  })
}
