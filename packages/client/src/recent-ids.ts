/**
 * The last ids that were delivered, so that an event a server or a proxy sends twice reaches the user once. Bounded: a
 * repetition is near what it repeats, and 1,024 ids of 26 characters are about 80 KB.
 */
export function createRecentIds(limit = 512): RecentIds {
  // Two halves, of which the older is dropped whole: taking single ids out of a set is what would cost.
  let ids = new Set<string>()
  let older = ids
  return {
    has: (id) => ids.has(id) || older.has(id),
    add(id) {
      ids.add(id)
      if (ids.size < limit) return
      older = ids
      ids = new Set()
    },
  }
}

export interface RecentIds {
  has(id: string): boolean
  /** Remembers at least the last `limit` ids, and less than twice as many. */
  add(id: string): void
}
