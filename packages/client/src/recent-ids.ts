/**
 * Tells whether an id is new, so that an event a server or a proxy sends twice reaches the user once. Remembers at least the
 * last `limit` ids, and less than twice as many: a repetition is near what it repeats, and 1,024 ids of 26 characters are
 * about 80 KB.
 */
export function createRecentIds(limit = 512): RecentIds {
  // Two halves, of which the older is dropped whole: taking single ids out is what would cost.
  let ids: string[] = []
  let older = ids
  // The greatest so far, by length and then as text. The ids of a log rise in this order, so that one comparison shows that
  // an id is new. With sets, the ids were a sixth of what a small event costs (bench/client).
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

/** @returns false when the id is one of those that are remembered; otherwise remembers it */
export type RecentIds = (id: string) => boolean
