import { isAfter, type Position } from '@rejoin/protocol'

type Placed = { readonly position: Position }

/** The index of the first item after `position`, in items that stand in position order from `start` on. */
export function indexAfter(items: readonly Placed[], position: Position, start = 0): number {
  let low = start
  let high = items.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isAfter((items[middle] as Placed).position, position)) high = middle
    else low = middle + 1
  }
  return low
}

/** Merges lists that are each in position order into one, at most `limit` long. */
export function mergeInOrder<Item extends Placed>(lists: readonly (readonly Item[])[], limit: number): Item[] {
  const filled = lists.filter((list) => list.length > 0)
  if (filled.length === 1) return (filled[0] as readonly Item[]).slice(0, limit)

  const merged: Item[] = []
  const next = filled.map(() => 0)
  while (merged.length < limit) {
    let best: Item | undefined
    let from = -1
    for (let index = 0; index < filled.length; index += 1) {
      const candidate = (filled[index] as readonly Item[])[next[index] as number]
      if (candidate && (!best || isAfter(best.position, candidate.position))) {
        best = candidate
        from = index
      }
    }
    if (!best) break
    merged.push(best)
    next[from] = (next[from] as number) + 1
  }
  return merged
}
