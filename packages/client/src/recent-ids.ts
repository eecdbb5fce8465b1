/**
 * The last ids that were delivered, so that an event a server or a proxy sends twice reaches the user once. Bounded: a
 * repetition is near what it repeats, and 512 ids of 26 characters are about 40 KB.
 */
export function createRecentIds(limit = 512): RecentIds {
  const ids = new Set<string>()
  return {
    has: (id) => ids.has(id),
    add(id) {
      ids.add(id)
      // A set keeps the order of insertion, so the first is the oldest.
      for (const oldest of ids) {
        if (ids.size <= limit) break
        ids.delete(oldest)
      }
    },
    clear: () => ids.clear(),
  }
}

export interface RecentIds {
  has(id: string): boolean
  add(id: string): void
  /** After a gap the log may have another history, in which an old id would mean another event. */
  clear(): void
}
