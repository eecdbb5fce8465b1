import type { Clock } from '@rejoin/client'

/** Time for a client that passes only when it is told to. */
export function manualClock(): Clock & { advance(ms: number): void } {
  const timers = new Map<number, { readonly at: number; run(): void }>()
  let now = 1_000_000
  let lastId = 0

  function next(until: number): number | undefined {
    const due = [...timers].filter(([, { at }]) => at <= until).sort(([, one], [, other]) => one.at - other.at)
    return due[0]?.[0]
  }

  return {
    now: () => now,
    random: () => 0.5,
    setTimeout(run, ms) {
      lastId += 1
      timers.set(lastId, { at: now + ms, run })
      return lastId
    },
    clearTimeout: (id) => void timers.delete(id as number),
    advance(ms) {
      const until = now + ms
      for (let id = next(until); id !== undefined; id = next(until)) {
        const timer = timers.get(id)
        timers.delete(id)
        now = Math.max(now, timer?.at ?? now)
        timer?.run()
      }
      now = until
    },
  }
}
