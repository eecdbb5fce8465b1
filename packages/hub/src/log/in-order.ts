import { isAfter, type Position } from '@rejoin/protocol'

type Positioned = { readonly position: Position }

/** The index of the first item after `position`, in items that stand in position order from `start` on. */
export function indexAfter(items: readonly Positioned[], position: Position, start = 0): number {
  let low = start
  let high = items.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isAfter((items[middle] as Positioned).position, position)) high = middle
    else low = middle + 1
  }
  return low
}

/** A stretch of a list in position order: from one index up to, but not including, another. */
export interface Stretch<Item extends Positioned> {
  readonly items: readonly Item[]
  from: number
  readonly to: number
}

/**
 * Walks several stretches as one list in position order. It copies and compares only as far as the caller walks. The stretches
 * lie in a heap by their next item, so a step costs the logarithm of their number.
 */
export function* mergeInOrder<Item extends Positioned>(stretches: readonly Stretch<Item>[]): Generator<Item> {
  const heap = stretches.filter((stretch) => stretch.from < stretch.to)
  for (let index = (heap.length >> 1) - 1; index >= 0; index -= 1) sink(heap, index)
  for (let first = heap[0]; first; first = heap[0]) {
    yield first.items[first.from] as Item
    first.from += 1
    if (first.from === first.to) {
      const last = heap.pop() as Stretch<Item>
      if (last !== first) heap[0] = last
    }
    sink(heap, 0)
  }
}

function sink<Item extends Positioned>(heap: Stretch<Item>[], start: number): void {
  let index = start
  for (;;) {
    const left = 2 * index + 1
    const right = left + 1
    let least = index
    if (left < heap.length && isBefore(heap, left, least)) least = left
    if (right < heap.length && isBefore(heap, right, least)) least = right
    if (least === index) return
    const other = heap[least] as Stretch<Item>
    heap[least] = heap[index] as Stretch<Item>
    heap[index] = other
    index = least
  }
}

function isBefore<Item extends Positioned>(heap: readonly Stretch<Item>[], a: number, b: number): boolean {
  const [one, other] = [heap[a], heap[b]] as [Stretch<Item>, Stretch<Item>]
  return isAfter((other.items[other.from] as Item).position, (one.items[one.from] as Item).position)
}
