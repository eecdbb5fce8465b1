/**
 * How long to wait before the next attempt: the time that the server asked for, and jitter on top.
 *
 * The jitter is drawn from a range that doubles with every failure, so that the clients of a server that stays away do
 * not come back together.
 *
 * @param formula - replaces full jitter
 */
export function retryDelay(wait: RetryWait, random: () => number, formula?: Formula): number {
  if (formula) return formula(wait)
  const { failures, baseMs, floorMs, maxMs, isSpread } = wait
  const range = isSpread && !failures ? minJitterMs : Math.max(baseMs, minJitterMs) * 2 ** failures
  const max = Math.min(Math.max(maxMs, floorMs), maxTimerMs)
  const floor = Math.min(floorMs, max)
  // At least a tenth of the limit is left for jitter, even when a server asks for all of it: clients that got the same
  // `Retry-After` must not come back in one instant.
  return floor + random() * Math.min(range, Math.max(max - floor, max / 10))
}

export type Formula = (wait: RetryWait) => number

export interface RetryWait {
  /**
   * Attempts that failed since the last good stream, without the one that failed just now. When retries stop being quick,
   * the quick ones no longer count, so that waits grow from the start.
   */
  failures: number
  /** The range of the jitter at the first failure, in ms. It doubles with every further failure. */
  baseMs: number
  /**
   * The shortest wait, in ms: the longest of `retryMs`, the server's `retry:` and its `Retry-After`. At most ten
   * minutes, or `maxRetryMs` where that is longer.
   */
  floorMs: number
  /** The longest wait, in ms. A longer floor, and a tenth for jitter, may exceed it. */
  maxMs: number
  /** The server has given each client a different time, so the first wait needs little jitter. */
  isSpread?: boolean | undefined
  /** The last wait, in ms; undefined before the first. */
  previousMs?: number | undefined
}

/** The smallest range of jitter. Without it, a server that asks for no wait would get requests without a pause. */
const minJitterMs = 200

/** Eleven days. `setTimeout` takes 2^31 ms and more as 1 ms, which would turn the longest wait into a reconnect storm. */
export const maxTimerMs = 1e9
