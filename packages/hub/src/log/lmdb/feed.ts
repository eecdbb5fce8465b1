import { isAfter, isSame, type Position } from '@rejoin/protocol'
import { ByteWriter, unseal } from './bytes.ts'
import { feedKey, feedRange, positionOf } from './keys.ts'
import type { LogState } from './state.ts'
import type { Entry, Store } from './store.ts'

/**
 * What one commit touched: for readers of patterns, who would otherwise have to look at every channel for news. It only
 * says where to look; where it does not reach back, or is damaged, all channels are looked at instead.
 */
export interface FeedEntry {
  /** When it was made. */
  readonly at: number
  /** Where the entry before this one stands, `origin` for the first. One that is missing shows by it. */
  readonly previous: Position
  /** The last place of the commit. */
  readonly last: Position
  /** How many events each channel got. */
  readonly channels: ReadonlyMap<string, number>
}

export function sealFeedEntry(key: Uint8Array, { at, previous, last, channels }: FeedEntry): Buffer {
  writer.number(at)
  writer.position(previous)
  writer.position(last)
  writer.number(channels.size)
  for (const [name, events] of channels) {
    writer.text(name)
    writer.number(events)
  }
  return writer.seal(key)
}

const writer = new ByteWriter()

export interface News {
  /** The channels with something after `after`, up to `through`. */
  readonly channels: readonly string[]
  /** How far the search went. */
  readonly through: Position
}

/**
 * Which channels that start with `prefix` have something after `after`, up to as many events as a page takes. Undefined
 * when the feed cannot tell.
 */
export function findNews(
  store: Store,
  { feedLast }: LogState,
  { prefix, after, through, events }: { prefix: string; after: Position; through: Position; events: number },
): News | undefined {
  const channels = new Set<string>()
  let before: Position | undefined
  let found = 0
  let looked = 0
  for (const { key, value } of entriesFrom(store, after)) {
    const at = positionOf(key)
    const entry = openFeedEntry(key, value)
    const follows =
      entry && (before ? isSame(entry.previous, before) : !isAfter(at, after) || !isAfter(entry.previous, after))
    if (!entry || !follows) return undefined
    before = at
    if (isAfter(at, through)) return { channels: [...channels], through }
    if (!isAfter(entry.last, after)) continue
    for (const [name, count] of entry.channels) {
      if (!name.startsWith(prefix)) continue
      channels.add(name)
      found += count
    }
    looked += 1
    if (found >= events || looked >= lookedAtATime) return { channels: [...channels], through: entry.last }
  }
  const isWhole = before ? isSame(before, feedLast) : !isAfter(feedLast, after)
  return isWhole ? { channels: [...channels], through } : undefined
}

/** The oldest entries, as far as they are to go: those made before a time, and those that are too many. */
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

// Some 20 MB. A reader of a pattern that was away for more commits than this costs a look at every channel.
export const maxFeedEntries = 200_000
// A page must not take longer than some milliseconds, also when all the news is of others.
const lookedAtATime = 2048

/** From the entry in whose commit a place lies, or from the first after it. */
function entriesFrom(store: Store, after: Position): Iterable<Entry> {
  const { start, end } = feedRange
  return store.range(store.lastKeyUpTo(feedKey(after), start) ?? start, end)
}

function openFeedEntry(key: Uint8Array, sealed: Buffer): FeedEntry | undefined {
  const reader = unseal(key, sealed)
  if (!reader) return undefined
  const at = reader.number()
  const previous = reader.position()
  const last = reader.position()
  const channels = new Map<string, number>()
  for (let left = reader.number(); left > 0; left -= 1) channels.set(reader.text(), reader.number())
  return { at, previous, last, channels }
}
