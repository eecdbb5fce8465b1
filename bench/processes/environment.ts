import type { Environment } from '@rejoin/hub'

/** The system's own, for a log that is opened without a hub. */
export const plainEnvironment: Environment = {
  now: Date.now,
  random: Math.random,
  after(delayMs, task) {
    const timer = setTimeout(task, delayMs).unref()
    return () => clearTimeout(timer)
  },
  endOfTurn: setImmediate,
  heapUsed: () => 0,
}
