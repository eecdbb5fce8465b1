/**
 * The record of the events that one reader saw, and the verdict on the hub. The reader's events are numbered 0, 1, 2, … in the
 * order of their publish.
 */
export interface ReaderRecord {
  /** Called when the reader starts without a cursor. It is owed the events from `sent` on: earlier ones may precede its start. */
  begin(sent: number): void
  /**
   * Called when the hub has sent `sync-required`. Events that are missing before the next event then count as announced, if they
   * are among the first `sent`. Later events were not yet published, so this gap cannot cover them.
   */
  gap(sent: number): void
  event(number: number): Finding
  /** Whether none of the first `count` events is still to come: each was seen, was skipped, or is covered by an announced gap. */
  hasReached(count: number): boolean
  /** Counts the missing events among the first `published`, and the events that came twice or out of order. */
  verdict(published: number): RecordVerdict
}

/** `skipped`: some events before it are missing. `late`: it was missing before, so the order is wrong. `doubled`: seen before. */
export type Finding = 'expected' | 'skipped' | 'late' | 'doubled'

export interface RecordVerdict {
  /** Events that were never seen, and that no gap announced. */
  readonly lost: number
  /** The first event that was lost. */
  readonly firstLost?: number
  /** Events that were never seen, and that an announced gap covers. */
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

  /** The events from `next` up to `end`, split in two: events that may be missing by `excuse`, and lost events. */
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

/** The reason why events before `sent` may be missing when the next event comes. */
interface Excuse {
  readonly why: 'unowed' | 'announced'
  readonly sent: number
}

/** Events that were not seen, from `from` up to, but not including, `end`. */
interface Missing {
  readonly from: number
  readonly end: number
  readonly why: 'lost' | 'unowed' | 'announced'
}

function isSome({ from, end }: Missing): boolean {
  return from < end
}
