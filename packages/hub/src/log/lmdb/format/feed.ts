import { isAfter, isSame, origin, type Position } from '@rejoin/protocol'
import type { Entry, Store } from '../files/store.ts'
import { ByteWriter, unseal } from './bytes.ts'
import { feedKey, feedRange, positionOf } from './keys.ts'
import type { LogState } from './state.ts'

/**
 * The channels that one commit touched. By the feed, a read of a pattern finds the channels with new events; without it, the read
 * would look at every channel. The feed only says where to look: where it does not reach back, or is damaged, the read looks at
 * every channel instead.
 */
export interface FeedEntry {
  /** The first position of the commit. */
  readonly first: Position
  /** The last position of the commit. */
  readonly last: Position
  /** The time of the commit. */
  readonly at: number
  /**
   * The last position of the entry before this one, `origin` for the first. By this link a missing entry shows. It also stops a
   * reader whose cursor lies in a commit that the feed has trimmed: this entry is not the next one for that reader.
   */
  readonly previous: Position
  readonly channels: readonly Touched[]
}

/** A channel that a commit touched: its first position in the commit and the number of its events, 0 for an invalidation. */
export interface Touched {
  readonly name: string
  readonly number: number
  readonly first: Position
  readonly events: number
}

export function sealFeedEntry(key: Uint8Array, { first, last, at, previous, channels }: FeedEntry): Buffer {
  writer.number(at)
  writer.position(previous)
  writer.position(last)
  writer.number(channels.length)
  for (const touched of channels) {
    writer.text(touched.name)
    writer.number(touched.number)
    writer.number(touched.first.ms - first.ms)
    writer.number(touched.first.seq)
    writer.number(touched.events)
  }
  return writer.seal(key)
}

const writer = new ByteWriter()

/**
 * The entries of commits that end after a position, in order, up to the newest. Ends with `broken` where an entry is missing or
 * damaged, or where the feed does not reach back to the position.
 */
export function* feedAfter(store: Store, { feedLast }: LogState, after: Position): Generator<FeedEntry | 'broken'> {
  let before: Position | undefined
  for (const { key, value } of entriesFrom(store, after)) {
    const entry = openFeedEntry(key, value)
    if (!entry || !(before ? isSame(entry.previous, before) : reachesBack(entry, after))) {
      yield 'broken'
      return
    }
    before = entry.last
    if (isAfter(entry.last, after)) yield entry
  }
  const isWhole = before ? isSame(before, feedLast) : !isAfter(feedLast, after)
  if (!isWhole) yield 'broken'
}

/**
 * The entries of commits that begin at or before a position, newest first, down to the first entry of the log. Ends with `broken`
 * where the next entry is missing or damaged.
 */
export function* feedBack(store: Store, through: Position): Generator<FeedEntry | 'broken'> {
  let before: Position | undefined
  for (const { key, value } of store.rangeBack(feedKey(through), feedRange.start)) {
    const entry = openFeedEntry(key, value)
    if (!entry || (before && !isSame(entry.last, before))) {
      yield 'broken'
      return
    }
    before = entry.previous
    yield entry
  }
  if (!before || !isSame(before, origin)) yield 'broken'
}

function reachesBack({ first, previous }: FeedEntry, after: Position): boolean {
  return !isAfter(first, after) || !isAfter(previous, after)
}

/** The keys of the oldest entries that have to go: entries made before a time, and entries beyond `maxFeedEntries`. */
export function staleEntries(
  store: Store,
  { feedEntries }: Pick<LogState, 'feedEntries'>,
  madeBefore: number,
  atMost: number,
): Buffer[] {
  const stale: Buffer[] = []
  for (const { key, value } of store.range(feedRange.start, feedRange.end)) {
    if (stale.length === atMost) break
    const entry = openFeedEntry(key, value)
    if (entry && entry.at >= madeBefore && feedEntries - stale.length <= maxFeedEntries) break
    stale.push(key)
  }
  return stale
}

/** Whether the oldest entry was made before a time. */
export function hasStaleEntry(store: Store, madeBefore: number): boolean {
  return staleEntries(store, { feedEntries: 0 }, madeBefore, 1).length > 0
}

// These take some 20 MB. A reader of a pattern that was away for more commits costs a look at every channel.
export const maxFeedEntries = 200_000

/** The entries from the commit in which a position lies, or from the first commit after it. */
function entriesFrom(store: Store, after: Position): Iterable<Entry> {
  const { start, end } = feedRange
  return store.range(store.lastKeyUpTo(feedKey(after), start) ?? start, end)
}

function openFeedEntry(key: Uint8Array, sealed: Buffer): FeedEntry | undefined {
  const reader = unseal(key, sealed)
  if (!reader) return undefined
  const first = positionOf(key)
  const at = reader.number()
  const previous = reader.position()
  const last = reader.position()
  const channels = Array.from({ length: reader.number() }, () => {
    const name = reader.text()
    const number = reader.number()
    return { name, number, first: { ms: first.ms + reader.number(), seq: reader.number() }, events: reader.number() }
  })
  return { first, last, at, previous, channels }
}
