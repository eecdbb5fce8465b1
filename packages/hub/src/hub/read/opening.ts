import { type Branch, type GapReason, isAfter, judgeCursor, latest, type Position } from '@rejoin/protocol'
import type { Gap, Log, Window } from '../../log/contract.ts'
import type { SliceQueue } from '../../slice-queue.ts'
import type { Frame } from '../live/frame.ts'
import type { Live } from '../live/live.ts'
import { type Subscription, wants } from '../live/subscription.ts'
import type { Blocks } from './blocks.ts'
import { sliceBytes } from './replay-slices.ts'
import { readReplay } from './replay-source.ts'

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
  | FoundOpening
  | { readonly ok: false; readonly reason: GapReason; readonly channels: readonly string[] }

export interface FoundOpening extends FoundStart {
  readonly ok: true
  readonly branch: Branch
}

/** Where a search for the past came out. */
interface FoundStart {
  readonly position: Position
  /** Of `last`: how many events of the subscription follow up to the head. */
  readonly replay?: number
  /** Of `earliest`: what was before it is gone, and why. */
  readonly lost?: Pick<Gap, 'reason' | 'channels'>
}

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
  windows(selectors: readonly string[]): Promise<readonly Window[]>
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
      return onceApplied(context, () => earliest(context, subscription))
    case 'last':
      return onceApplied(context, () => beforeLast(context, subscription, start.events))
    case 'now':
      return { ok: true, position: context.live.head, branch: context.live.branch }
  }
}

/**
 * Where the stream of a cursor starts, when that can be told without asking the log; else undefined, and `findOpening` has to find
 * out. Almost every return is one of these, and readers that return together are spared a chain of promises each.
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
 * Judges a cursor while the log is away and events go past it. These events are kept nowhere, so a returning reader may have missed
 * some of them, and cannot resume. The reason is what the cursor alone tells.
 */
export function judgeWithoutLog({ log, live }: OpeningContext, { channels }: Subscription, cursor: string): Opening {
  const verdict = judgeCursor(cursor, { formats: log.formats, history: log.history, head: live.head })
  return { ok: false, reason: verdict.ok ? 'forced' : verdict.reason, channels }
}

/**
 * The log may have trimmed past what this node's tail has brought; a stream that started behind it would go back. A search
 * during which the tail went on on another branch has looked at both, so it is made anew.
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

async function earliest({ log, windows }: OpeningContext, { channels }: Subscription): Promise<FoundStart> {
  const first = log.history[0]?.first as Position
  const held = await windows(channels)
  const position = held.reduce((position, window) => latest(position, window.trimmedThrough), first)
  const lossy = held.filter(({ lost }) => lost !== undefined)
  const reason = gapReasons.find((reason) => lossy.some(({ lost }) => lost === reason))
  return reason ? { position, lost: { reason, channels: lossy.map(({ channel }) => channel) } } : { position }
}

// That which says the most about several channels comes first.
const gapReasons: readonly Gap['reason'][] = ['forced', 'epoch', 'expired']

/** The position behind which `count` events of the subscription stand, or as many as there are. */
async function beforeLast(context: Search, subscription: Subscription, count: number): Promise<FoundStart> {
  const { log, live, slices, isGone } = context
  if (count === 0) return { position: live.head, replay: 0 }
  let wholeAfter = log.history[0]?.first as Position
  let through = live.head
  let left = count
  // Most readers ask for a few events, which the first page has. A filter that lets none of them through needs many pages.
  let most = Math.min(count + 1, backAtATime)
  while (isAfter(through, wholeAfter) && !isGone()) {
    const range = [wholeAfter, through, most] as const
    most = Math.min(8 * most, backAtATime)
    // Asked again when its turn comes, which in a flood is later than those who made it stay.
    let gone = false
    const page = await slices.take(() => {
      gone = isGone()
      return gone ? undefined : log.readBack?.(subscription.channels, ...range)
    })
    if (gone) break
    if (!page) return beforeLastFromTheOldest(context, subscription, count)
    wholeAfter = latest(wholeAfter, page.wholeAfter)
    for (const found of page.positions) {
      if (left === 0) return { position: latest(wholeAfter, found.position), replay: count }
      // What one channel of several still holds from before another was trimmed does not follow.
      if (!isAfter(found.position, wholeAfter)) break
      if (wants(subscription, found)) left -= 1
    }
    through = page.completeAfter
    if (left === 0) return { position: latest(wholeAfter, through), replay: count }
  }
  return { position: wholeAfter, replay: count - left }
}

// A millisecond or two of a log.
const backAtATime = 1024

/** The same, found the long way: for a log that cannot be read backwards, or not so far. */
async function beforeLastFromTheOldest(
  context: Search,
  subscription: Subscription,
  count: number,
): Promise<FoundStart> {
  let { position: start } = await earliest(context, subscription)
  let positions: Position[] = []
  for await (const frames of framesAfter(context, subscription, start)) {
    if ('wholeAfter' in frames) {
      // The window has moved on while it was read: begin where it begins now.
      start = frames.wholeAfter
      positions = []
      continue
    }
    for (const frame of frames) positions.push(frame.position)
    // Cut in bulk, because cutting is a copy. One more than asked for is kept: the position before the first of them.
    if (positions.length > 2 * count + 1000) positions = positions.slice(-count - 1)
  }
  return { position: positions.at(-count - 1) ?? start, replay: Math.min(count, positions.length) }
}

/**
 * Frames of the subscription after a position, up to the head, some at a time; a gap when the reading had to skip to where it is
 * whole. What is at hand is walked in slices as well: a turn that walked all of it would be as long as the window.
 */
export async function* framesAfter(
  context: OpeningContext & Partial<Search>,
  subscription: Subscription,
  after: Position,
): AsyncGenerator<readonly Frame[] | Gap> {
  const { blocks, live, slices, isGone } = context
  const { channels } = subscription
  let { branch, head: through } = live
  let cursor = after
  while (isAfter(through, cursor) && !isGone?.()) {
    const hot = await slices.take(() =>
      live.hot.covers(channels, cursor) ? live.hot.slice(channels, cursor, sliceBytes) : undefined,
    )
    if (hot) {
      yield hot.frames.filter((frame) => wants(subscription, frame))
      // That was everything up to the head of now, which on another branch can be before `through` for ever.
      if (!hot.cut) return
      cursor = hot.through
      continue
    }
    if (live.branch.epoch !== branch.epoch) {
      // What was the head may lie behind the fork of the branch of now, where nothing can be read up to.
      branch = live.branch
      through = live.head
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
