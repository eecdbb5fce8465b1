import type { Clock } from '../../src/clock.ts'

/** A clock that stands still until it is told to go on, and whose chance is always the same. */
export function fakeClock({ start = 1_700_000_000_000, luck = 0.5 } = {}): FakeClock {
  let now = start
  const timers = new Map<number, { at: number; callback: () => void }>()
  let lastTimer = 0
  return {
    now: () => now,
    random: () => luck,
    setTimeout(callback, ms) {
      timers.set(++lastTimer, { at: now + Math.max(ms, 0), callback })
      return lastTimer
    },
    clearTimeout(timer) {
      timers.delete(timer as number)
    },
    freeze(ms) {
      now += ms
    },
    timers: () => [...timers.values()].map(({ at }) => at - now),
    advance(ms) {
      const end = now + ms
      for (;;) {
        const due = [...timers].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at)[0]
        if (!due) break
        const [timer, { at, callback }] = due
        timers.delete(timer)
        now = Math.max(now, at)
        callback()
      }
      now = end
    },
  }
}

export interface FakeClock extends Clock {
  /** Lets time pass, and whatever is due in it happen. */
  advance(ms: number): void
  /** Lets time pass while nothing happens, as it does for a machine that is asleep or a page that is frozen. */
  freeze(ms: number): void
  /** How far off the timers are that are set, in ms. */
  timers(): number[]
}
