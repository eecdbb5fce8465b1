import { report } from './report.ts'

/**
 * How long to wait before the next attempt: what was asked for, and jitter on top.
 *
 * The first retry after a good stream waits for the server's `retry:` and up to a fifth of a second, so that a cut costs
 * about what the server said it should. Every further one draws its jitter from a range that grows, so that the clients
 * of a hub that stays away do not come back together.
 */
export function retryDelay(wait: RetryWait, random: () => number, formula: Backoff = 'full'): number {
  const { failures, baseMs, previousMs = 0 } = wait
  const max = Math.min(wait.maxMs, maxTimerMs)
  const floor = Math.min(wait.floorMs, max)
  if (typeof formula === 'function') {
    let asked = 0
    try {
      asked = formula(wait) || 0
    } catch (error) {
      // It has asked for nothing: without any wait, the stream would never come back.
      report(error)
    }
    return Math.min(Math.max(asked, floor), max)
  }
  const grown = formula === 'decorrelated' ? 3 * previousMs : Math.max(baseMs, firstJitterMs) * 2 ** failures
  const range = failures > 0 ? grown : firstJitterMs
  const share = formula === 'none' ? 1 : formula === 'equal' ? (1 + random()) / 2 : random()
  // A tenth of the limit stays for jitter even when a server asks for all of it: clients that one `Retry-After` sent
  // away together must not come back in one instant.
  const room = Math.max(max - floor, max / 10)
  return Math.min(floor + share * Math.min(range, room), maxTimerMs)
}

/**
 * How the waits of clients that lost the same hub are spread. `full`: over all of a range that doubles with every
 * failure. `equal`: over its upper half. `decorrelated`: over three times the last wait. `none`: not at all, each waits
 * for the whole range. A function gives the wait in ms; the server's floor and the limit still hold,
 * also when it throws, which is reported.
 */
export type Backoff = 'full' | 'equal' | 'decorrelated' | 'none' | ((wait: RetryWait) => number)

export interface RetryWait {
  /** Attempts that have failed since the last good stream, before this one. */
  failures: number
  /** Doubled for every failure. */
  baseMs: number
  /** Waited in any case: the server's `retry:` or its `Retry-After`. */
  floorMs: number
  /** Bounds the wait, whatever the server asks, but for a tenth of jitter. */
  maxMs: number
  /** The last wait; 0 before the first. */
  previousMs?: number
}

/** Median and 99th percentile of the first retry stay 100 and 198 ms over the server's `retry:`. */
const firstJitterMs = 200

/** `setTimeout` takes 2^31 ms and more as 1 ms, which would turn the longest wait into a reconnect storm. */
export const maxTimerMs = 2 ** 31 - 1
