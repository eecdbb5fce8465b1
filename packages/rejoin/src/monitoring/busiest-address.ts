/**
 * How often the busiest address has connected within a minute. A rising count is a client in a loop. The lines `sse_connect` tell
 * its address: a metric with addresses as labels would grow without end.
 */
export interface BusiestAddress {
  connected(ip: string | null): void
  /** The higher count of two minutes: the last full one, and the current one. */
  connects(): number
}

const minuteMs = 60_000
// Beyond this number of addresses in one minute, further addresses are not counted.
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
