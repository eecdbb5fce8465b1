/** Time and chance. Tests pass their own clock, so that they wait for nothing and a run can be repeated. */
export interface Clock {
  /** Ms since 1970. Wall-clock time, so that a machine that wakes up knows how long it slept. */
  now(): number
  /** From 0 up to, not including, 1. */
  random(): number
  setTimeout(callback: () => void, ms: number): unknown
  clearTimeout(timer: unknown): void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  random: () => Math.random(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (timer) => clearTimeout(timer as number),
}
