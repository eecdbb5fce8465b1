/**
 * How long to wait before the next attempt: what was asked for, and jitter on top.
 *
 * The first retry after a good stream waits for the server's `retry:` and up to a fifth of a second, so that a cut costs
 * about what the server said it should. Every further one draws its jitter from the whole of a doubling range, so that
 * the clients of a hub that stays away do not come back together.
 */
export function retryDelay(wait: RetryWait, random: () => number): number {
  const max = Math.min(wait.maxMs, maxTimerMs)
  const floor = Math.min(wait.floorMs, max)
  const range = wait.failures === 0 ? firstJitterMs : Math.max(wait.baseMs, firstJitterMs) * 2 ** wait.failures
  // A tenth of the limit stays for jitter even when a server asks for all of it: clients that one `Retry-After` sent
  // away together must not come back in one instant.
  const room = Math.max(max - floor, max / 10)
  return Math.min(floor + random() * Math.min(range, room), maxTimerMs)
}

export interface RetryWait {
  /** Attempts that have failed since the last good stream, before this one. */
  failures: number
  /** Doubled for every failure. */
  baseMs: number
  /** Waited in any case: the server's `retry:` or its `Retry-After`. */
  floorMs: number
  /** Bounds the wait, whatever the server asks, but for a tenth of jitter. */
  maxMs: number
}

/** Median and 99th percentile of the first retry stay 100 and 198 ms over the server's `retry:`. */
const firstJitterMs = 200

/** `setTimeout` takes 2^31 ms and more as 1 ms, which would turn the longest wait into a reconnect storm. */
export const maxTimerMs = 2 ** 31 - 1
