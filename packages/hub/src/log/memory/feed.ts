import { origin, type Position } from '@rejoin/protocol'
import type { ChannelRing } from '../channel-ring.ts'
import { indexAfter } from '../in-order.ts'

/**
 * The events and invalidations of all channels in position order. By the feed, a read of a pattern finds the channels with new
 * events; without it, the read would look at every channel. The feed only says where to look, and lets go of its oldest entries.
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

// An entry takes some 50 bytes. A reader of a pattern that has missed more entries costs a look at every channel.
const maxEntries = 100_000

export function createMemoryFeed(): MemoryFeed {
  let entries: FeedEntry[] = []
  let droppedThrough = origin

  function* walk(from: number, to: number, step: 1 | -1): Generator<FeedEntry> {
    // A walk may go on in a later turn, after `add` has replaced the array.
    const walked = entries
    for (let index = from; index !== to; index += step) yield walked[index] as FeedEntry
  }

  return {
    get droppedThrough() {
      return droppedThrough
    },
    add(entry) {
      entries.push(entry)
      // Old entries go in bulk, because that copies the array.
      if (entries.length < 1.25 * maxEntries) return
      const kept = entries.length - maxEntries
      droppedThrough = (entries[kept - 1] as FeedEntry).position
      entries = entries.slice(kept)
    },
    after: (position) => walk(indexAfter(entries, position), entries.length, 1),
    upTo: (position) => walk(indexAfter(entries, position) - 1, -1, -1),
  }
}
