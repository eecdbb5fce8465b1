import { nowMicros } from './event.ts'

export interface Pace {
  stop(): void
  /** Told by a publisher that rejected an event: it can take one again. */
  resume(): void
}

// A publisher that is behind pauses this often to let its process do other things. Without the pause, one that cannot
// keep up would never come back: each batch it owes takes longer than the one before.
const sliceMicros = 10_000

/**
 * Calls `publish` at a steady rate with the time at which the event was due. When the process was busy, what is overdue
 * follows at once, still with its own due time, so that waiting for the publisher counts as latency. `publish` returns
 * false when it cannot take the event now.
 */
export function keepPace(perSecond: number, publish: (dueMicros: number) => boolean): Pace {
  const start = nowMicros()
  const everyMicros = 1_000_000 / perSecond
  let published = 0
  let state: 'running' | 'rejected' | 'stopped' = 'running'
  let timer: NodeJS.Timeout | undefined

  function tick(): void {
    publishNext(nowMicros() + sliceMicros)
  }

  // Each event has a callback of its own, as each has that comes in a request of its own: what a server puts off to the
  // end of a callback is done before the next one.
  function publishNext(sliceEnd: number): void {
    if (state === 'stopped') return
    const now = nowMicros()
    const due = Math.floor(start + published * everyMicros)
    if (due > now) {
      timer = setTimeout(tick, (due - now) / 1000)
    } else if (now > sliceEnd) {
      setImmediate(tick)
    } else if (publish(due)) {
      published += 1
      process.nextTick(publishNext, sliceEnd)
    } else {
      state = 'rejected'
    }
  }
  tick()

  return {
    stop() {
      state = 'stopped'
      clearTimeout(timer)
    },
    resume() {
      if (state !== 'rejected') return
      state = 'running'
      tick()
    },
  }
}
