import { comparePositions, isAfter, type Position } from '@rejoin/protocol'
import type { ChannelRing } from '../channel-ring.ts'

/**
 * The channels of a log with a budget, in the order of their oldest events. A channel stands at or before its oldest event: a
 * trim does not move the channel, its turn in the order does.
 */
export interface ChannelsByAge {
  /** Adds a channel that holds an event. Does nothing when the channel is in the order already. */
  add(ring: ChannelRing): void
  /** Removes a channel that the log has forgotten. */
  remove(ring: ChannelRing): void
  /** The channel with the oldest event of all; undefined when no channel holds an event. */
  oldest(): ChannelRing | undefined
}

export function createChannelsByAge(): ChannelsByAge {
  // A heap: no entry is older than its parent, which stands at half its index.
  let heap: Aged[] = []
  const known = new Set<ChannelRing>()

  function isBefore(one: number, other: number): boolean {
    return isAfter((heap[other] as Aged).position, (heap[one] as Aged).position)
  }

  function swap(one: number, other: number): void {
    const moved = heap[one] as Aged
    heap[one] = heap[other] as Aged
    heap[other] = moved
  }

  function sinkFirst(): void {
    for (let at = 0; ; ) {
      const [left, right] = [2 * at + 1, 2 * at + 2]
      let least = at
      if (left < heap.length && isBefore(left, least)) least = left
      if (right < heap.length && isBefore(right, least)) least = right
      if (least === at) return
      swap(at, least)
      at = least
    }
  }

  function riseLast(): void {
    for (let at = heap.length - 1; at > 0; ) {
      const parent = (at - 1) >> 1
      if (!isBefore(at, parent)) return
      swap(at, parent)
      at = parent
    }
  }

  function removeFirst(): void {
    known.delete((heap[0] as Aged).ring)
    const last = heap.pop() as Aged
    if (heap.length === 0) return
    heap[0] = last
    sinkFirst()
  }

  return {
    add(ring) {
      const position = ring.oldest?.position
      if (!position || known.has(ring)) return
      known.add(ring)
      heap.push({ position, ring })
      riseLast()
    },
    remove(ring) {
      // Removed channels leave the heap in bulk: to search for one of them would take a walk of the heap.
      if (!known.delete(ring) || known.size * 2 > heap.length) return
      heap = heap.filter((aged) => known.has(aged.ring)).sort((a, b) => comparePositions(a.position, b.position))
    },
    oldest() {
      for (let first = heap[0]; first; first = heap[0]) {
        const position = known.has(first.ring) ? first.ring.oldest?.position : undefined
        if (!position) {
          removeFirst()
        } else if (isAfter(position, first.position)) {
          first.position = position
          sinkFirst()
        } else {
          return first.ring
        }
      }
      return undefined
    },
  }
}

interface Aged {
  position: Position
  readonly ring: ChannelRing
}
