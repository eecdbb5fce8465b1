/**
 * How often the address that connects most has connected within a minute. One that climbs is a client in a loop; who it is
 * stands in the lines `sse_connect`, because a metric with addresses for labels would grow without end.
 */
export interface BusiestAddress {
  connected(ip: string | null): void
  /** Of the minute that is over, or the one that runs, whichever has the higher count. */
  connects(): number
}

const minuteMs = 60_000
// In a minute in which more addresses connect, those that come later are not counted.
const maxAddresses = 50_000

export function createBusiestAddress(now: () => number = () => performance.now()): BusiestAddress {
  let counts = new Map<string, number>()
  let most = 0
  let mostBefore = 0
  let since = now()

  function turnMinute(): void {
    const elapsed = now() - since
    if (elapsed < minuteMs) return
    mostBefore = elapsed < 2 * minuteMs ? most : 0
    most = 0
    counts = new Map()
    since = now()
  }

  return {
    connected(ip) {
      turnMinute()
      if (ip === null || (counts.size >= maxAddresses && !counts.has(ip))) return
      const count = (counts.get(ip) ?? 0) + 1
      counts.set(ip, count)
      most = Math.max(most, count)
    },
    connects() {
      turnMinute()
      return Math.max(most, mostBefore)
    },
  }
}
