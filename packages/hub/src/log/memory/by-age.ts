import { comparePositions, isAfter, type Position } from '@rejoin/protocol'
import type { ChannelRing } from '../channel-ring.ts'

/**
 * The channels of a log, the one with the oldest event first, for a log with a budget. A channel stands at or before its oldest
 * event: it is moved when its turn has come, not with every trim.
 */
export interface ChannelsByAge {
  /** A channel that holds something. Nothing happens when the channel stands there already. */
  add(ring: ChannelRing): void
  /** A channel that was forgotten, and takes nothing any more. */
  remove(ring: ChannelRing): void
  /** The channel with the oldest event of all; undefined when none holds anything. */
  oldest(): ChannelRing | undefined
}

export function createChannelsByAge(): ChannelsByAge {
  // A heap: none of its entries is older than the one at half its index.
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
      // It leaves the heap in bulk: to search for it would take as long as the heap is.
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
