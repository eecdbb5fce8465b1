import type { ErrorCode } from '@rejoin/protocol'
import type { LimitReq } from './limit-req.ts'
import type { OwnLoad } from './own-load.ts'
import { partOf, type StormPlan } from './plan.ts'
import type { Published } from './publishing.ts'
import type { StormReader } from './reader.ts'
import { addExample, type Example, type Faults, type Tally, type TimesSummary } from './tally.ts'

/** The result of a storm. */
export interface StormReport {
  readonly url: string
  readonly plan: StormPlan & { readonly patternReaders: number; readonly slowReaders: number }
  /**
   * `held`: every reader got every event once and in order, or was told of a gap. `broken`: at least one reader did not.
   * `unfinished`: no fault was seen, but some readers had not returned when the storm ended, nothing was published, or publishing
   * failed.
   */
  readonly verdict: 'held' | 'broken' | 'unfinished'
  /** Why publishing ended before its time; left out when it did not. */
  readonly failure?: Failure
  readonly published: number
  readonly delivered: number
  readonly faults: Faults
  readonly examples: readonly Example[]
  /** Gaps that the hub announced by `sync-required`. They are no faults: the hub promises every event or an announced gap. */
  readonly gaps: { readonly frames: number; readonly events: number }
  /** Readers that had not returned at the end. It is unknown whether they would have got the rest. */
  readonly missingReaders: number
  readonly delayMs?: TimesSummary
  /** How long returning readers took to catch up. */
  readonly catchUpMs?: TimesSummary
  readonly connections: Connections
  readonly own: OwnLoad
  /** For how long events were published: less than planned when the storm was interrupted, or publishing failed. */
  readonly publishMs: number
  /** How long the storm took. */
  readonly ms: number
}

/** The error of a publish that was given up. */
export interface Failure {
  readonly code: ErrorCode
  readonly message: string
  readonly retryable: boolean
}

export interface Connections {
  readonly cuts: number
  readonly returns: number
  readonly drops: number
  readonly unseenCursors: number
  readonly closes: Readonly<Record<string, number>>
  readonly rejections: Readonly<Record<string, number>>
  /** Requests for a stream that `limit_req` of nginx delayed or rejected. */
  readonly limitReq: Readonly<Record<LimitReq, number>>
  readonly failures: Readonly<Record<string, number>>
}

export interface Ended {
  readonly url: string
  readonly plan: StormPlan
  readonly readers: readonly StormReader[]
  readonly published: Published
  readonly tally: Tally
  readonly failure: Failure | undefined
  readonly own: OwnLoad
  readonly publishMs: number
  readonly ms: number
}

export function reportOf({ url, plan, readers, published, tally, failure, own, publishMs, ms }: Ended): StormReport {
  const counts = { lost: 0, doubled: 0, disordered: 0, foreign: tally.foreign, cursorless: tally.cursorless }
  let announced = 0
  let missingReaders = 0
  for (const [number, { record, share, state }] of readers.entries()) {
    // Events that the hub did not confirm may not exist, so nobody is owed them.
    const owed = share.countOf(published.confirmed)
    const isMissing = state !== 'connected' && !record.hasReached(owed)
    if (isMissing) missingReaders += 1
    // For a reader that has not returned, the events after its last one are not known to be lost.
    const verdict = record.verdict(isMissing ? 0 : owed)
    counts.lost += verdict.lost
    counts.doubled += verdict.doubled
    counts.disordered += verdict.disordered
    announced += verdict.announced
    if (verdict.firstLost !== undefined) {
      const event = share.numberOf(verdict.firstLost)
      addExample(tally, { fault: 'lost', reader: number, selector: share.selector, event })
    }
  }
  const isBroken = Object.values(counts).some((count) => count > 0)
  const isUnfinished = missingReaders > 0 || published.confirmed === 0 || failure !== undefined
  const delayMs = tally.delay.summary()
  const catchUpMs = tally.catchUp.summary()
  return {
    url,
    plan: {
      ...plan,
      patternReaders: partOf(plan.readers, plan.patternPercent),
      slowReaders: partOf(plan.readers, plan.slowPercent),
    },
    verdict: isBroken ? 'broken' : isUnfinished ? 'unfinished' : 'held',
    ...(failure === undefined ? {} : { failure }),
    published: published.confirmed,
    delivered: tally.delivered,
    faults: counts,
    examples: tally.examples,
    gaps: { frames: tally.gaps, events: announced },
    missingReaders,
    ...(delayMs === undefined ? {} : { delayMs }),
    ...(catchUpMs === undefined ? {} : { catchUpMs }),
    connections: {
      cuts: tally.cuts,
      returns: tally.returns,
      drops: tally.drops,
      unseenCursors: tally.unseenCursors,
      closes: Object.fromEntries(tally.closes),
      rejections: Object.fromEntries(tally.rejections),
      limitReq: tally.limitReq,
      failures: Object.fromEntries(tally.failures),
    },
    own,
    publishMs,
    ms,
  }
}
