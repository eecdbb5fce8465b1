import { origin, type Position } from '@rejoin/protocol'
import type { ChannelRing } from '../channel-ring.ts'
import { indexAfter } from '../in-order.ts'

/**
 * In which order channels got their events, and were invalidated: for readers of patterns, who would otherwise have to
 * look at every channel for news. It only says where to look, and lets go of its oldest entries.
 */
export interface MemoryFeed {
  /** Positions up to here are not in the feed any more. */
  readonly droppedThrough: Position
  add(entry: FeedEntry): void
  /** The entries after a position, oldest first. */
  after(position: Position): Iterable<FeedEntry>
  /** The entries up to a position, newest first. */
  upTo(position: Position): Iterable<FeedEntry>
}

export interface FeedEntry {
  readonly position: Position
  readonly channel: string
  readonly ring: ChannelRing
}

// Some 50 bytes each. A reader of a pattern that has missed more costs a look at every channel.
const maxEntries = 100_000

export function createMemoryFeed(): MemoryFeed {
  let entries: FeedEntry[] = []
  let droppedThrough = origin

  function* walk(from: number, to: number, step: 1 | -1): Generator<FeedEntry> {
    // Of a walk that is not finished in its turn, the rest may have moved.
    const walked = entries
    for (let index = from; index !== to; index += step) yield walked[index] as FeedEntry
  }

  return {
    get droppedThrough() {
      return droppedThrough
    },
    add(entry) {
      entries.push(entry)
      // In bulk, because it is a copy.
      if (entries.length < 1.25 * maxEntries) return
      const kept = entries.length - maxEntries
      droppedThrough = (entries[kept - 1] as FeedEntry).position
      entries = entries.slice(kept)
    },
    after: (position) => walk(indexAfter(entries, position), entries.length, 1),
    upTo: (position) => walk(indexAfter(entries, position) - 1, -1, -1),
  }
}
