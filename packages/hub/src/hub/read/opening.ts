import { type GapReason, gravestLoss, isAfter, judgeCursor, latest, type Point, type Position } from '@rejoin/protocol'
import type { Gap, Log, Window } from '../../log/contract.ts'
import type { SliceQueue } from '../../slice-queue.ts'
import type { Complete } from '../../with-defaults.ts'
import type { Frame } from '../live/frame.ts'
import type { Live } from '../live/live.ts'
import { type Subscription, wants } from '../live/subscription.ts'
import type { LogIds } from '../log-ids.ts'
import { type Ends, hasEverything } from './ends.ts'
import type { GapSegment, Segments } from './segments.ts'

/** Where a reader asks its stream to start. */
export type Start =
  /** Behind this id: the reader has everything up to it. `added` names channels that the reader did not have at that time. */
  | { readonly from: 'cursor'; readonly cursor: string; readonly added?: readonly string[] }
  /** At the head: only new events follow. */
  | { readonly from: 'now' }
  /** As far back as no channel has a gap. */
  | { readonly from: 'earliest' }
  /** Before the newest `events` events, or before all when there are fewer. */
  | { readonly from: 'last'; readonly events: number }

/** Where the stream really starts, or why it cannot start where the reader asked. */
export type Opening =
  | FoundOpening
  | { readonly kind: 'gap'; readonly reason: GapReason; readonly channels: readonly string[] }

export interface FoundOpening extends Omit<FoundStart, 'position'> {
  readonly kind: 'start'
  readonly at: Point
  /** Set when the reader got further on a branch than the log has survived: it is at the fork. */
  readonly isTorn?: true
  /** Set when the reader has everything of channels that have all ended (§4.10). */
  readonly isFinished?: true
}

interface FoundStart {
  readonly position: Position
  /** For `last`: how many events of the subscription follow up to the head. */
  readonly replay?: number
  /** For `earliest`: which channels lost events before this position, and why. */
  readonly lost?: Pick<Gap, 'reason' | 'channels'>
}

export interface ReplayLimits {
  /**
   * The most events that one return may replay. A reader further behind is told `replay-limit` and starts at the head, which can
   * serve it better than a flood of old events.
   * @defaultValue Infinity
   */
  maxReplayEvents?: number | undefined
  /**
   * The greatest age of the event that a return may start with, in milliseconds. A reader further behind is told `replay-limit`.
   * @defaultValue Infinity
   */
  maxReplayAgeMs?: number | undefined
}

export interface OpeningContext extends Complete<ReplayLimits>, Pick<LogIds, 'pointAt'> {
  readonly log: Log
  readonly live: Live
  readonly segments: Segments
  readonly slices: SliceQueue
  readonly ends: Ends
  /** Like `log.windows`. Readers that ask at the same time share one call. */
  windows(selectors: readonly string[]): Promise<readonly Window[]>
  now(): number
}

/**
 * Finds where a stream starts: at once when the hub can tell without asking the log, as for almost every return. So readers that
 * return together are spared a chain of promises each.
 *
 * @param isGone - whether the reader has gone meanwhile. Then the search is given up, and its result means nothing.
 */
export function findOpening(
  context: OpeningContext,
  subscription: Subscription,
  start: Start,
  isGone: () => boolean = () => false,
): Opening | Promise<Opening> {
  if (start.from === 'now') return { kind: 'start', at: context.live.head }
  if (start.from === 'cursor') {
    const cached = mayBeFinished(context, subscription, start) ? undefined : openingInMemory(context, start.cursor)
    if (cached) return cached
  }
  const search = { ...context, isGone }
  switch (start.from) {
    case 'cursor':
      return judge(search, subscription, start)
    case 'earliest':
      return onceApplied(search, () => earliest(search, subscription))
    case 'last':
      return onceApplied(search, () => beforeLast(search, subscription, start.events))
  }
}

function openingInMemory(context: OpeningContext, cursor: string): FoundOpening | undefined {
  const { log, live, pointAt, maxReplayEvents, maxReplayAgeMs } = context
  if (Math.min(maxReplayEvents, maxReplayAgeMs) < Number.POSITIVE_INFINITY) return undefined
  const verdict = judgeCursor(cursor, { formats: log.formats, history: log.history, head: live.head.position })
  if (!verdict.ok) return undefined
  const at = pointAt(verdict.position)
  return live.hasReached(at) ? { kind: 'start', at } : undefined
}

/** A search for one reader. */
interface Search extends OpeningContext {
  isGone(): boolean
}

/**
 * Judges a cursor while the log is away and the hub publishes without it. The events of that time are kept nowhere, so a
 * returning reader may have missed some of them, and cannot resume. The reason comes from the cursor alone.
 */
export function judgeWithoutLog({ log, live }: OpeningContext, { selectors }: Subscription, cursor: string): Opening {
  const verdict = judgeCursor(cursor, { formats: log.formats, history: log.history, head: live.head.position })
  return { kind: 'gap', reason: verdict.ok ? 'forced' : verdict.reason, channels: selectors }
}

/**
 * Searches, and waits until the tail of this hub has brought the position that was found. The log may have trimmed events that
 * the tail has yet to bring. When the tail changes to another branch during a search, the search has seen both, and is repeated.
 */
async function onceApplied({ live, pointAt, isGone }: Search, search: () => Promise<FoundStart>): Promise<Opening> {
  for (;;) {
    const { epoch } = live.head.branch
    const { position, ...found } = await search()
    const at = pointAt(position)
    await live.reached(at)
    if (live.head.branch.epoch === epoch || isGone()) return { kind: 'start', at, ...found }
  }
}

async function judge(context: Search, subscription: Subscription, start: CursorStart): Promise<Opening> {
  const { log, live, pointAt } = context
  const { selectors } = subscription
  const { cursor } = start
  let verdict = judgeCursor(cursor, { formats: log.formats, history: log.history, head: live.head.position })
  if (!verdict.ok && (verdict.reason === 'ahead' || verdict.reason === 'epoch')) {
    // The cursor may be ahead, or on an unknown branch, only because the tail of this hub is behind. The log itself knows. Its
    // answer also brings the history up to date, so the cursor is judged after it.
    const head = await log.head()
    verdict = judgeCursor(cursor, { formats: log.formats, history: log.history, head })
  }
  if (!verdict.ok && !verdict.survivor) return { kind: 'gap', reason: verdict.reason, channels: selectors }
  const at = pointAt(verdict.ok ? verdict.position : (verdict.survivor as Position))
  await live.reached(at)
  const tooLong = await exceedsLimits(context, subscription, at)
  if (tooLong) return { kind: 'gap', reason: 'replay-limit', channels: selectors }
  if (!verdict.ok) return { kind: 'start', at, isTorn: true }
  return (await isFinished(context, subscription, start, at))
    ? { kind: 'start', at, isFinished: true }
    : { kind: 'start', at }
}

type CursorStart = Extract<Start, { from: 'cursor' }>

/**
 * Whether the channels have all ended, as far as this hub knows, and its tail has brought their ends: it may have yet to bring an
 * end, and events before it.
 */
export function mayBeFinished(
  { ends, live }: Pick<OpeningContext, 'ends' | 'live'>,
  { selectors }: Subscription,
  start: Start,
): boolean {
  if (start.from !== 'cursor' || start.added?.length) return false
  return hasEverything(live.head.position, ends.of(selectors))
}

/** Whether a reader that starts here has everything of channels that have all ended. Never rejects. */
async function isFinished(context: Search, subscription: Subscription, start: Start, at: Point): Promise<boolean> {
  const { ends, live } = context
  const { selectors } = subscription
  if (!mayBeFinished(context, subscription, start)) return false
  const end = ends.of(selectors)
  // The tail may have yet to bring the branch that the log is on.
  if (at.branch.epoch !== live.head.branch.epoch && isAfter(at.branch.first, live.head.branch.first)) return false
  for await (const some of framesAfter(context, subscription, at)) {
    if (isGap(some) || some.length > 0) return false
  }
  // The log may have lost the end meanwhile.
  return ends.of(selectors) === end
}

async function exceedsLimits(context: Search, subscription: Subscription, after: Point): Promise<boolean> {
  const { maxReplayEvents, maxReplayAgeMs } = context
  if (maxReplayEvents === Number.POSITIVE_INFINITY && maxReplayAgeMs === Number.POSITIVE_INFINITY) return false
  let count = 0
  for await (const frames of framesAfter(context, subscription, after)) {
    if (isGap(frames)) {
      if (frames.isMark) continue
      // Lost events cannot be counted. The replay finds the gap and announces it.
      return false
    }
    const [first] = frames
    if (count === 0 && first && context.now() - first.at > maxReplayAgeMs) return true
    count += frames.length
    if (count > maxReplayEvents) return true
    if (count > 0 && maxReplayEvents === Number.POSITIVE_INFINITY) return false
  }
  return false
}

async function earliest({ log, windows }: OpeningContext, { selectors }: Subscription): Promise<FoundStart> {
  const first = log.history[0]?.first as Position
  const held = await windows(selectors)
  const position = held.reduce((position, window) => latest(position, window.trimmedThrough), first)
  const lossy = held.filter(({ lost }) => lost !== undefined)
  const reason = gravestLoss(lossy.map(({ lost }) => lost))
  return reason ? { position, lost: { reason, channels: lossy.map(({ channel }) => channel) } } : { position }
}

/** The position behind which the newest `count` events of the subscription stand, or all events when there are fewer. */
async function beforeLast(context: Search, subscription: Subscription, count: number): Promise<FoundStart> {
  const { log, live, slices, isGone } = context
  if (count === 0) return { position: live.head.position, replay: 0 }
  let wholeAfter = log.history[0]?.first as Position
  let through = live.head.position
  let left = count
  // Most readers ask for a few events, and the first page has them. A filter that rejects these events needs many pages.
  let most = Math.min(count + 1, backAtATime)
  while (isAfter(through, wholeAfter) && !isGone()) {
    const range = [wholeAfter, through, most] as const
    most = Math.min(8 * most, backAtATime)
    // In a flood of requests, the reader may be gone before the read gets its slice of time.
    let gone = false
    const page = await slices.take(() => {
      gone = isGone()
      return gone ? undefined : log.readBack?.(subscription.selectors, ...range)
    })
    if (gone) break
    if (!page) return beforeLastFromTheOldest(context, subscription, count)
    wholeAfter = latest(wholeAfter, page.wholeAfter)
    for (const found of page.positions) {
      if (left === 0) return { position: latest(wholeAfter, found.position), replay: count }
      // Another channel was trimmed up to here, so the older events of this channel are not replayed.
      if (!isAfter(found.position, wholeAfter)) break
      if (wants(subscription, found)) left -= 1
    }
    through = page.completeAfter
    if (left === 0) return { position: latest(wholeAfter, through), replay: count }
  }
  return { position: wholeAfter, replay: count - left }
}

// Takes a log one or two milliseconds.
const backAtATime = 1024

/** Like `beforeLast`, by reading forwards: for a log that cannot be read backwards, or not that far. */
async function beforeLastFromTheOldest(
  context: Search,
  subscription: Subscription,
  count: number,
): Promise<FoundStart> {
  let { position: start } = await earliest(context, subscription)
  let positions: Position[] = []
  for await (const frames of framesAfter(context, subscription, context.pointAt(start))) {
    if (isGap(frames)) {
      // The events before a mark count: the replay announces the mark where it comes to it.
      if (frames.isMark) continue
      // The window was trimmed during the read. Start again where it begins now.
      start = frames.wholeAfter
      positions = []
      continue
    }
    for (const frame of frames) positions.push(frame.position)
    // Cut in bulk, because each cut is a copy. One more position is kept: the stream starts at it, before the first event.
    if (positions.length > 2 * count + 1000) positions = positions.slice(-count - 1)
  }
  return { position: positions.at(-count - 1) ?? start, replay: Math.min(count, positions.length) }
}

/**
 * Yields the frames of the subscription after a point, up to the head, some at a time. Yields a gap and goes on behind it when
 * events are lost. Frames in memory are walked in slices too: one turn for all of them would be as long as the window.
 */
async function* framesAfter(
  context: Search,
  subscription: Subscription,
  after: Point,
): AsyncGenerator<readonly Frame[] | GapSegment> {
  const { live, segments, slices, pointAt, isGone } = context
  const { position: through } = live.head
  let cursor = after
  while (isAfter(through, cursor.position) && !isGone()) {
    const segment = await slices.take(() => segments.read(subscription, cursor))
    if (segment.kind === 'gap') {
      yield segment
      cursor = pointAt(segment.wholeAfter)
      continue
    }
    const walk = segment.slices[Symbol.iterator]()
    for (;;) {
      const next = await slices.take(() => walk.next())
      if (next.done) break
      yield next.value.wanted
      // On another branch the head may stay before `through` for ever, because no read goes past it.
      if (next.value.isHead) return
      cursor = next.value.through
    }
  }
}

function isGap(found: readonly Frame[] | GapSegment): found is GapSegment {
  return 'kind' in found
}
