import { type Branch, type GapReason, isAfter, judgeCursor, latest, type Position } from '@rejoin/protocol'
import type { Gap, Log } from '../log/contract.ts'
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
  now(): number
}

export async function findOpening(context: OpeningContext, subscription: Subscription, start: Start): Promise<Opening> {
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

/** The log may have trimmed past what this node's tail has brought; a stream that started behind it would go back. */
async function onceApplied({ live, branchOf }: OpeningContext, position: Position): Promise<Opening> {
  const branch = branchOf(position)
  await live.reached(position, branch)
  return { ok: true, position, branch }
}

async function judge(context: OpeningContext, subscription: Subscription, cursor: string): Promise<Opening> {
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

async function exceedsLimits(context: OpeningContext, subscription: Subscription, after: Position): Promise<boolean> {
  const { maxReplayEvents, maxReplayAgeMs } = context
  if (maxReplayEvents === Number.POSITIVE_INFINITY && maxReplayAgeMs === Number.POSITIVE_INFINITY) return false
  let count = 0
  for await (const frame of framesAfter(context, subscription, after)) {
    // What is gone cannot be counted; the replay itself finds the gap and announces it.
    if ('wholeAfter' in frame) return false
    if (count === 0 && context.now() - frame.at > maxReplayAgeMs) return true
    count += 1
    if (count > maxReplayEvents) return true
  }
  return false
}

async function earliest({ log }: OpeningContext, { channels }: Subscription): Promise<Position> {
  const first = log.history[0]?.first as Position
  const windows = await log.windows(channels)
  return windows.reduce((place, window) => latest(place, window.trimmedThrough), first)
}

/** The place behind which `count` events of the subscription stand. */
async function beforeLast(context: OpeningContext, subscription: Subscription, count: number): Promise<Position> {
  let start = await earliest(context, subscription)
  let places: Position[] = []
  for await (const frame of framesAfter(context, subscription, start)) {
    if ('wholeAfter' in frame) {
      // The window has moved on while it was read: begin where it begins now.
      start = frame.wholeAfter
      places = []
      continue
    }
    places.push(frame.position)
    // Cut in bulk, because cutting is a copy. One more than asked for is kept: the place before the first of them.
    if (places.length > 2 * count + 1000) places = places.slice(-count - 1)
  }
  return places.at(-count - 1) ?? start
}

/** Frames of the subscription after a place, up to the head; a gap when the reading had to skip to where it is whole. */
export async function* framesAfter(
  { blocks, live }: OpeningContext,
  subscription: Subscription,
  after: Position,
): AsyncGenerator<Frame | Gap> {
  const through = live.head
  let cursor = after
  while (isAfter(through, cursor)) {
    const replay = live.hot.covers(subscription.channels, cursor)
      ? { frames: live.hot.slice(subscription.channels, cursor, Number.POSITIVE_INFINITY).frames, through: live.head }
      : await readReplay(blocks, subscription.channels, cursor, through)
    if ('wholeAfter' in replay) {
      yield replay
      cursor = replay.wholeAfter
    } else {
      for (const frame of replay.frames) if (wants(subscription, frame)) yield frame
      cursor = replay.through
    }
  }
}
