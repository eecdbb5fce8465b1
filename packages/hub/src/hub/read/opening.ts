import { type Branch, type GapReason, isAfter, judgeCursor, latest, type Position } from '@rejoin/protocol'
import type { Gap, Log, Window } from '../../log/contract.ts'
import type { SliceQueue } from '../../slice-queue.ts'
import type { Complete } from '../../with-defaults.ts'
import type { Frame } from '../live/frame.ts'
import type { Live } from '../live/live.ts'
import { type Subscription, wantedOf, wants } from '../live/subscription.ts'
import type { Blocks } from './blocks.ts'
import { sliceBytes } from './replay-slices.ts'
import { readReplay } from './replay-source.ts'

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
  | { readonly ok: false; readonly reason: GapReason; readonly channels: readonly string[] }

export interface FoundOpening extends FoundStart {
  readonly ok: true
  readonly branch: Branch
  /** Set when the reader got further on a branch than the log has survived: it is at the fork. */
  readonly isTorn?: true
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

export interface OpeningContext extends Complete<ReplayLimits> {
  readonly log: Log
  readonly live: Live
  readonly blocks: Blocks
  /** The branch of a position, according to the history of the log now. */
  branchOf(position: Position): Branch
  readonly slices: SliceQueue
  /** Like `log.windows`. Readers that ask at the same time share one call. */
  windows(selectors: readonly string[]): Promise<readonly Window[]>
  now(): number
}

/**
 * Finds where a stream starts.
 *
 * @param isGone - whether the reader has gone meanwhile. Then the search is given up, and its result means nothing.
 */
export async function findOpening(
  opening: OpeningContext,
  subscription: Subscription,
  start: Start,
  isGone: () => boolean = () => false,
): Promise<Opening> {
  const context = { ...opening, isGone }
  switch (start.from) {
    case 'cursor':
      return judge(context, subscription, start.cursor)
    case 'earliest':
      return onceApplied(context, () => earliest(context, subscription))
    case 'last':
      return onceApplied(context, () => beforeLast(context, subscription, start.events))
    case 'now':
      return { ok: true, position: context.live.head, branch: context.live.branch }
  }
}

/**
 * Like `findOpening` for a cursor, when the hub can tell without asking the log; else undefined. Almost every return is such a
 * case. So readers that return together are spared a chain of promises each.
 */
export function openingAtHand(context: OpeningContext, cursor: string): FoundOpening | undefined {
  const { log, live, branchOf, maxReplayEvents, maxReplayAgeMs } = context
  if (Math.min(maxReplayEvents, maxReplayAgeMs) < Number.POSITIVE_INFINITY) return undefined
  const verdict = judgeCursor(cursor, { formats: log.formats, history: log.history, head: live.head })
  if (!verdict.ok) return undefined
  const { position } = verdict
  const branch = branchOf(position)
  return live.hasReached(position, branch) ? { ok: true, position, branch } : undefined
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
  const verdict = judgeCursor(cursor, { formats: log.formats, history: log.history, head: live.head })
  return { ok: false, reason: verdict.ok ? 'forced' : verdict.reason, channels: selectors }
}

/**
 * Searches, and waits until the tail of this hub has brought the position that was found. The log may have trimmed events that
 * the tail has yet to bring. When the tail changes to another branch during a search, the search has seen both, and is repeated.
 */
async function onceApplied({ live, branchOf, isGone }: Search, search: () => Promise<FoundStart>): Promise<Opening> {
  for (;;) {
    const { epoch } = live.branch
    const found = await search()
    const branch = branchOf(found.position)
    await live.reached(found.position, branch)
    if (live.branch.epoch === epoch || isGone()) return { ok: true, ...found, branch }
  }
}

async function judge(context: Search, subscription: Subscription, cursor: string): Promise<Opening> {
  const { log, live, branchOf } = context
  const { selectors } = subscription
  let verdict = judgeCursor(cursor, { formats: log.formats, history: log.history, head: live.head })
  if (!verdict.ok && (verdict.reason === 'ahead' || verdict.reason === 'epoch')) {
    // The cursor may be ahead, or on an unknown branch, only because the tail of this hub is behind. The log itself knows. Its
    // answer also brings the history up to date, so the cursor is judged after it.
    const head = await log.head()
    verdict = judgeCursor(cursor, { formats: log.formats, history: log.history, head })
  }
  if (!verdict.ok && !verdict.survivor) return { ok: false, reason: verdict.reason, channels: selectors }
  const position = verdict.ok ? verdict.position : (verdict.survivor as Position)
  const branch = branchOf(position)
  await live.reached(position, branch)
  const tooLong = await exceedsLimits(context, subscription, position)
  if (tooLong) return { ok: false, reason: 'replay-limit', channels: selectors }
  return verdict.ok ? { ok: true, position, branch } : { ok: true, position, branch, isTorn: true }
}

async function exceedsLimits(context: Search, subscription: Subscription, after: Position): Promise<boolean> {
  const { maxReplayEvents, maxReplayAgeMs } = context
  if (maxReplayEvents === Number.POSITIVE_INFINITY && maxReplayAgeMs === Number.POSITIVE_INFINITY) return false
  let count = 0
  for await (const frames of framesAfter(context, subscription, after)) {
    if ('wholeAfter' in frames) {
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
  const reason = gapReasons.find((reason) => lossy.some(({ lost }) => lost === reason))
  return reason ? { position, lost: { reason, channels: lossy.map(({ channel }) => channel) } } : { position }
}

// The first reason that one of the channels has is told for all of them.
const gapReasons: readonly Gap['reason'][] = ['forced', 'epoch', 'expired']

/** The position behind which the newest `count` events of the subscription stand, or all events when there are fewer. */
async function beforeLast(context: Search, subscription: Subscription, count: number): Promise<FoundStart> {
  const { log, live, slices, isGone } = context
  if (count === 0) return { position: live.head, replay: 0 }
  let wholeAfter = log.history[0]?.first as Position
  let through = live.head
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
  for await (const frames of framesAfter(context, subscription, start)) {
    if ('wholeAfter' in frames) {
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
 * Yields the frames of the subscription after a position, up to the head, some at a time. Yields a gap and goes on behind it when
 * events are lost. Frames in memory are walked in slices too: one turn for all of them would be as long as the window.
 */
export async function* framesAfter(
  context: OpeningContext & Partial<Search>,
  subscription: Subscription,
  after: Position,
): AsyncGenerator<readonly Frame[] | Gap> {
  const { blocks, live, slices, isGone } = context
  const { selectors } = subscription
  let { branch, head: through } = live
  let cursor = after
  while (isAfter(through, cursor) && !isGone?.()) {
    const hot = await slices.take(() =>
      live.hot.covers(selectors, cursor) ? live.hot.slice(selectors, cursor, sliceBytes) : undefined,
    )
    if (hot) {
      yield wantedOf(subscription, hot.frames)
      // The slice reached the head. On another branch the head may stay before `through` for ever.
      if (!hot.cut) return
      cursor = hot.through
      continue
    }
    if (live.branch.epoch !== branch.epoch) {
      // The old head may be behind the fork of the new branch. No read can reach it there.
      branch = live.branch
      through = live.head
      continue
    }
    const replay = await readReplay(blocks, selectors, cursor, through)
    if ('wholeAfter' in replay) {
      yield replay
      cursor = replay.wholeAfter
      continue
    }
    const walk = replay.frames[Symbol.iterator]()
    for (let isDone = false; !isDone; ) {
      const frames: Frame[] = []
      isDone = await slices.take(() => takeSome(walk, (frame) => wants(subscription, frame) && frames.push(frame)))
      yield frames
    }
    cursor = replay.through
  }
}

const walkedAtATime = 1024

/** Returns true when nothing is left. */
function takeSome(walk: Iterator<Frame>, each: (frame: Frame) => void): boolean {
  for (let taken = 0; taken < walkedAtATime; taken += 1) {
    const { done, value } = walk.next()
    if (done) return true
    each(value)
  }
  return false
}
