/**
 * How long to wait before the next attempt: what the server asked for, and jitter on top.
 *
 * Jitter is drawn from a range that doubles with every failure, so that the clients of a server that stays away do not
 * come back together.
 *
 * @param formula - takes the place of full jitter
 */
export function retryDelay(wait: RetryWait, random: () => number, formula?: Formula): number {
  return formula ? formula(wait, random) : spread(wait, rangeOf(wait), random())
}

/** The floor of a wait, and a share of a range on top, of as much of it as the limit allows. */
export function spread({ maxMs, floorMs }: RetryWait, range: number, share: number): number {
  const max = Math.min(Math.max(maxMs, floorMs), maxTimerMs)
  const floor = Math.min(floorMs, max)
  // A tenth of the limit stays for jitter even when a server asks for all of it: clients that one `Retry-After` sent
  // away together must not come back in one instant.
  return floor + share * Math.min(range, Math.max(max - floor, max / 10))
}

export function rangeOf({ failures, baseMs, isSpread }: RetryWait): number {
  return isSpread && !failures ? minJitterMs : Math.max(baseMs, minJitterMs) * 2 ** failures
}

export type Formula = (wait: RetryWait, random: () => number) => number

export interface RetryWait {
  /** Attempts that have failed since the last good stream, before this one. */
  failures: number
  /** Doubled for every failure. */
  baseMs: number
  /** Waited in any case: the server's `retry:` or its `Retry-After`, at most ten minutes. */
  floorMs: number
  /** Bounds the wait, but for the floor and a tenth of jitter. */
  maxMs: number
  /** The server has told each client a time of its own, so that the first wait needs little jitter. */
  isSpread?: boolean | undefined
  /** The last wait; 0 before the first. */
  previousMs?: number | undefined
}

/** Without it, a server that asks for no wait would be asked without pause. */
const minJitterMs = 200

/** Eleven days. `setTimeout` takes 2^31 ms and more as 1 ms, which would turn the longest wait into a reconnect storm. */
export const maxTimerMs = 1e9
