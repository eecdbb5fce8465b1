import { type GapReason, isAfter, judgeCursor, latest, type Position } from '@rejoin/protocol'
import type { Log, LogEvent } from '../log/contract.ts'
import type { Live } from './live.ts'
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
  | { readonly ok: true; readonly position: Position }
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
  now(): number
}

const pageEvents = 1024

export async function findOpening(context: OpeningContext, subscription: Subscription, start: Start): Promise<Opening> {
  switch (start.from) {
    case 'cursor':
      return judge(context, subscription, start.cursor)
    case 'earliest':
      return { ok: true, position: await earliest(context, subscription) }
    case 'last':
      return { ok: true, position: await beforeLast(context, subscription, start.events) }
    case 'now':
      return { ok: true, position: context.live.head }
  }
}

async function judge(context: OpeningContext, subscription: Subscription, cursor: string): Promise<Opening> {
  const { log, live } = context
  const { channels } = subscription
  let verdict = judgeCursor(cursor, { formats: log.formats, history: log.history, head: live.head })
  if (!verdict.ok && verdict.reason === 'ahead') {
    // Ahead of this node may only mean that our tail is behind: the log itself knows.
    verdict = judgeCursor(cursor, { formats: log.formats, history: log.history, head: await log.head() })
    if (verdict.ok) await live.reached(verdict.position)
  }
  if (!verdict.ok) return { ok: false, reason: verdict.reason, channels }
  const tooLong = await exceedsLimits(context, subscription, verdict.position)
  return tooLong ? { ok: false, reason: 'replay-limit', channels } : verdict
}

async function exceedsLimits(
  { log, live, maxReplayEvents, maxReplayAgeMs, now }: OpeningContext,
  subscription: Subscription,
  after: Position,
): Promise<boolean> {
  if (maxReplayEvents === Number.POSITIVE_INFINITY && maxReplayAgeMs === Number.POSITIVE_INFINITY) return false
  let count = 0
  for await (const event of eventsAfter(log, subscription, after, live.head)) {
    if (count === 0 && now() - event.at > maxReplayAgeMs) return true
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
  let places = [await earliest(context, subscription)]
  for await (const event of eventsAfter(context.log, subscription, places[0] as Position, context.live.head)) {
    places.push(event.position)
    // One more than asked for: the place before the first of them. Cut in bulk, because cutting is a copy.
    if (places.length > 2 * count + pageEvents) places = places.slice(-count - 1)
  }
  return places.at(-count - 1) ?? (places[0] as Position)
}

async function* eventsAfter(
  log: Log,
  subscription: Subscription,
  after: Position,
  through: Position,
): AsyncGenerator<LogEvent> {
  let cursor = after
  while (isAfter(through, cursor)) {
    const page = await log.read(subscription.channels, cursor, through, pageEvents)
    // What is gone cannot be counted; the replay itself finds the gap and announces it.
    if (page.gap) return
    for (const event of page.events) if (wants(subscription, event)) yield event
    cursor = page.completeThrough
  }
}
