import { type Branch, type GapReason, isAfter, judgeCursor, latest, type Position } from '@rejoin/protocol'
import type { Gap, Log, Window } from '../log/contract.ts'
import type { SliceQueue } from '../slice-queue.ts'
import type { Blocks } from './blocks.ts'
import type { Frame } from './frame.ts'
import type { Live } from './live.ts'
import { readReplay } from './replay-source.ts'
import { type Subscription, wants } from './subscription.ts'

/** Where a reader asks its stream to start. */
export type Start =
  /** Behind this id; the reader has everything up to it. `added` names channels it did not have when it got the id. */
  | { readonly from: 'cursor'; readonly cursor: string; readonly added?: readonly string[] }
  /** At the head: only what comes. */
  | { readonly from: 'now' }
  /** As far back as all channels are whole. */
  | { readonly from: 'earliest' }
  /** So that this many events come first, or as many as there are. */
  | { readonly from: 'last'; readonly events: number }

/** Where the stream really starts, or why it cannot start where the reader asked. */
export type Opening =
  | { readonly ok: true; readonly position: Position; readonly branch: Branch }
  | { readonly ok: false; readonly reason: GapReason; readonly channels: readonly string[] }

export interface ReplayLimits {
  /**
   * The most events one return may replay. A reader further behind is told `replay-limit` and starts at the head, which
   * can be kinder to it than a flood of old news.
   * @defaultValue Infinity
   */
  maxReplayEvents?: number
  /**
   * The oldest event a return may start with, in milliseconds of age. Older: `replay-limit`.
   * @defaultValue Infinity
   */
  maxReplayAgeMs?: number
}

export interface OpeningContext extends Required<ReplayLimits> {
  readonly log: Log
  readonly live: Live
  readonly blocks: Blocks
  /** The branch that a position of the log lies on, as the log tells it now. */
  branchOf(position: Position): Branch
  readonly slices: SliceQueue
  /** As the log's own, shared by those who ask at the same time. */
  windows(names: readonly string[]): Promise<readonly Window[]>
  now(): number
}

/**
 * Finds where a stream starts.
 *
 * @param isGone - whether the reader has gone meanwhile. A search that nobody waits for is given up; what it gives then says
 *   nothing.
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
      return onceApplied(context, await earliest(context, subscription))
    case 'last':
      return onceApplied(context, await beforeLast(context, subscription, start.events))
    case 'now':
      return { ok: true, position: context.live.head, branch: context.live.branch }
  }
}

/** A search for one reader. */
interface Search extends OpeningContext {
  isGone(): boolean
}

/**
 * While events go past a log that is away: whoever returns may have missed some of those, which are kept nowhere, so nobody
 * resumes. The reason is what can be said of the cursor without asking the log.
 */
export function judgeWithoutLog({ log, live }: OpeningContext, { channels }: Subscription, cursor: string): Opening {
  const verdict = judgeCursor(cursor, { formats: log.formats, history: log.history, head: live.head })
  return { ok: false, reason: verdict.ok ? 'forced' : verdict.reason, channels }
}

/** The log may have trimmed past what this node's tail has brought; a stream that started behind it would go back. */
async function onceApplied({ live, branchOf }: OpeningContext, position: Position): Promise<Opening> {
  const branch = branchOf(position)
  await live.reached(position, branch)
  return { ok: true, position, branch }
}

async function judge(context: Search, subscription: Subscription, cursor: string): Promise<Opening> {
  const { log, live, branchOf } = context
  const { channels } = subscription
  let verdict = judgeCursor(cursor, { formats: log.formats, history: log.history, head: live.head })
  if (!verdict.ok && (verdict.reason === 'ahead' || verdict.reason === 'epoch')) {
    // Ahead of this node, or on a branch it has not heard of, may only mean that our tail is behind: the log itself
    // knows. Its answer also brings the branches up to date, so they are looked at after it.
    const head = await log.head()
    verdict = judgeCursor(cursor, { formats: log.formats, history: log.history, head })
  }
  if (!verdict.ok && !verdict.survivor) return { ok: false, reason: verdict.reason, channels }
  const position = verdict.ok ? verdict.position : (verdict.survivor as Position)
  const branch = branchOf(position)
  await live.reached(position, branch)
  const tooLong = await exceedsLimits(context, subscription, position)
  return tooLong ? { ok: false, reason: 'replay-limit', channels } : { ok: true, position, branch }
}

async function exceedsLimits(context: Search, subscription: Subscription, after: Position): Promise<boolean> {
  const { maxReplayEvents, maxReplayAgeMs } = context
  if (maxReplayEvents === Number.POSITIVE_INFINITY && maxReplayAgeMs === Number.POSITIVE_INFINITY) return false
  let count = 0
  for await (const frames of framesAfter(context, subscription, after)) {
    // What is gone cannot be counted; the replay itself finds the gap and announces it.
    if ('wholeAfter' in frames) return false
    const [first] = frames
    if (count === 0 && first && context.now() - first.at > maxReplayAgeMs) return true
    count += frames.length
    if (count > maxReplayEvents) return true
    if (count > 0 && maxReplayEvents === Number.POSITIVE_INFINITY) return false
  }
  return false
}

async function earliest({ log, windows }: OpeningContext, { channels }: Subscription): Promise<Position> {
  const first = log.history[0]?.first as Position
  const held = await windows(channels)
  return held.reduce((place, window) => latest(place, window.trimmedThrough), first)
}

/** The place behind which `count` events of the subscription stand, or as many as there are. */
async function beforeLast(context: Search, subscription: Subscription, count: number): Promise<Position> {
  const { log, live, slices, isGone } = context
  if (count === 0) return live.head
  let wholeAfter = log.history[0]?.first as Position
  let through = live.head
  let left = count
  // Most ask for a few, and have them with the first page. A filter that lets none of them through needs many pages.
  let most = Math.min(count + 1, backAtATime)
  while (isAfter(through, wholeAfter) && !isGone()) {
    const range = [wholeAfter, through, most] as const
    most = Math.min(8 * most, backAtATime)
    const page = await slices.take(() => log.readBack?.(subscription.channels, ...range))
    if (!page) return beforeLastFromTheOldest(context, subscription, count)
    wholeAfter = latest(wholeAfter, page.wholeAfter)
    for (const place of page.places) {
      if (left === 0) return latest(wholeAfter, place.position)
      if (wants(subscription, place)) left -= 1
    }
    through = page.completeAfter
    if (left === 0) return latest(wholeAfter, through)
  }
  return wholeAfter
}

// A millisecond or two of a log.
const backAtATime = 1024

/** The same, found the long way: for a log that cannot be read backwards, or not so far. */
async function beforeLastFromTheOldest(context: Search, subscription: Subscription, count: number): Promise<Position> {
  let start = await earliest(context, subscription)
  let places: Position[] = []
  for await (const frames of framesAfter(context, subscription, start)) {
    if ('wholeAfter' in frames) {
      // The window has moved on while it was read: begin where it begins now.
      start = frames.wholeAfter
      places = []
      continue
    }
    for (const frame of frames) places.push(frame.position)
    // Cut in bulk, because cutting is a copy. One more than asked for is kept: the place before the first of them.
    if (places.length > 2 * count + 1000) places = places.slice(-count - 1)
  }
  return places.at(-count - 1) ?? start
}

/**
 * Frames of the subscription after a place, up to the head, some at a time; a gap when the reading had to skip to where it is
 * whole. What is at hand is walked in slices as well: a turn that walked all of it would be as long as the window.
 */
export async function* framesAfter(
  context: OpeningContext & Partial<Search>,
  subscription: Subscription,
  after: Position,
): AsyncGenerator<readonly Frame[] | Gap> {
  const { blocks, live, slices, isGone } = context
  const { channels } = subscription
  const through = live.head
  let cursor = after
  while (isAfter(through, cursor) && !isGone?.()) {
    const hot = await slices.take(() =>
      live.hot.covers(channels, cursor) ? live.hot.slice(channels, cursor, sliceBytes) : undefined,
    )
    if (hot) {
      yield hot.frames.filter((frame) => wants(subscription, frame))
      cursor = hot.cut ? hot.through : live.head
      continue
    }
    const replay = await readReplay(blocks, channels, cursor, through)
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

const sliceBytes = 64 * 1024
const walkedAtATime = 1024

/** Whether that was the rest. */
function takeSome(walk: Iterator<Frame>, each: (frame: Frame) => void): boolean {
  for (let taken = 0; taken < walkedAtATime; taken += 1) {
    const { done, value } = walk.next()
    if (done) return true
    each(value)
  }
  return false
}
