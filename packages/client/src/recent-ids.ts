/**
 * Tells whether an id is new, so that an event that a server or a proxy sends twice reaches the user once. Remembers at
 * least the last `limit` ids, and fewer than twice as many. That is enough, because a repetition follows soon. 1,024
 * ids of 26 characters take about 80 KB.
 */
export function createRecentIds(limit = 512): RecentIds {
  // Two halves. The older half is dropped as a whole, because removing single ids would cost more.
  let ids: string[] = []
  let older = ids
  // The greatest id so far, by length and then as text. The ids of a log rise in this order, so one comparison shows
  // that an id is new. With sets, the ids were a sixth of what a small event costs (bench/client).
  let greatest = ''
  return (id) => {
    if (id.length === greatest.length ? id > greatest : id.length > greatest.length) greatest = id
    else if (ids.includes(id) || older.includes(id)) return false
    if (ids.push(id) === limit) {
      older = ids
      ids = []
    }
    return true
  }
}

/** @returns false when the id is remembered; otherwise remembers it */
export type RecentIds = (id: string) => boolean
