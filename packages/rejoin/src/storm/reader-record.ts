/**
 * What one reader saw of the events that it is owed, and what this says of the hub. The events have numbers without gaps, 0, 1,
 * 2, …, in the order in which they were published.
 */
export interface ReaderRecord {
  /** The reader starts without a cursor. It is owed every event from `sent` on: the earlier ones may be older than its start. */
  begin(sent: number): void
  /**
   * The hub said in band that something is gone. What is missing before the next event is announced, as far as it was sent by
   * then. The publish of a later event had not begun, so no gap that was known already can hold it.
   */
  gap(sent: number): void
  event(number: number): Finding
  /** Whether none of the first `count` events is still to come: they were seen, skipped, or are covered by an announced gap. */
  hasReached(count: number): boolean
  /** What is missing of the first `published` events, and what came wrongly. */
  verdict(published: number): RecordVerdict
}

/** `skipped`: later than the next one. `late`: skipped before, so the order is wrong. `doubled`: seen before. */
export type Finding = 'expected' | 'skipped' | 'late' | 'doubled'

export interface RecordVerdict {
  /** Never seen, without a word from the hub. */
  readonly lost: number
  /** The first event that was lost. */
  readonly firstLost?: number
  /** Never seen, and covered by a gap that the hub announced. */
  readonly announced: number
  readonly doubled: number
  readonly disordered: number
}

export function createReaderRecord(): ReaderRecord {
  let next = 0
  let doubled = 0
  let disordered = 0
  let excuse: Excuse | undefined
  const missing: Missing[] = []

  /** The events from `next` up to `end`, parted by whether the hub has an excuse for them. */
  function missingUpTo(end: number): Missing[] {
    if (end <= next) return []
    const excused = Math.min(Math.max(excuse?.sent ?? 0, next), end)
    const parts: Missing[] = [
      { from: next, end: excused, why: excuse?.why ?? 'lost' },
      { from: excused, end, why: 'lost' },
    ]
    return parts.filter(isSome)
  }

  function recover(number: number): boolean {
    const index = missing.findIndex(({ from, end }) => from <= number && number < end)
    const found = missing[index]
    if (!found) return false
    const rest = [
      { ...found, end: number },
      { ...found, from: number + 1 },
    ]
    missing.splice(index, 1, ...rest.filter(isSome))
    return true
  }

  return {
    begin(sent) {
      excuse = { why: 'unowed', sent }
    },
    gap(sent) {
      excuse = { why: 'announced', sent }
    },
    event(number) {
      if (number >= next) {
        const skipped = number > next
        missing.push(...missingUpTo(number))
        excuse = undefined
        next = number + 1
        return skipped ? 'skipped' : 'expected'
      }
      if (recover(number)) {
        disordered += 1
        return 'late'
      }
      doubled += 1
      return 'doubled'
    },
    hasReached: (count) => Math.max(next, excuse?.sent ?? 0) >= count,
    verdict(published) {
      const all = [...missing, ...missingUpTo(published)]
      const count = (why: Missing['why']) =>
        all.reduce((sum, each) => (each.why === why ? sum + each.end - each.from : sum), 0)
      const firstLost = all.find(({ why }) => why === 'lost')?.from
      return {
        lost: count('lost'),
        ...(firstLost === undefined ? {} : { firstLost }),
        announced: count('announced'),
        doubled,
        disordered,
      }
    },
  }
}

/** Why events before `sent` may be missing at the next event. */
interface Excuse {
  readonly why: 'unowed' | 'announced'
  readonly sent: number
}

/** Events that were not seen, from `from` up to and without `end`. */
interface Missing {
  readonly from: number
  readonly end: number
  readonly why: 'lost' | 'unowed' | 'announced'
}

function isSome({ from, end }: Missing): boolean {
  return from < end
}
