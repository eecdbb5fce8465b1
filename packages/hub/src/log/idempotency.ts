import { RejoinError } from '@rejoin/protocol'
import type { Complete } from '../with-defaults.ts'

/** Remembers the result of each publish by its idempotency key, for a bounded time and a bounded number of keys. */
export interface Idempotency<Result> {
  /** The result of an earlier publish under this key. Throws `key-reused` when the earlier publish had another hash. */
  earlier(once: Once, now: number): Result | undefined
  /** Throws `overloaded` when there is no room for another key of this publisher. */
  admit(once: Once): void
  remember(once: Once, result: Result, now: number): void
}

export interface Once {
  /** The publisher of the key: two publishers may use the same key without conflict. */
  readonly scope: string
  readonly key: string
  /** The hash of everything in the publish. */
  readonly hash: string
}

export interface IdempotencyOptions {
  /**
   * How long a key is remembered, in milliseconds. A publisher that retries later than that publishes twice. Rejoin's own
   * publisher retries for ten minutes at most.
   * @defaultValue 86400000 (a day)
   */
  maxAgeMs?: number | undefined
  /**
   * How many keys are remembered over all publishers. Beyond that the oldest keys go, but no key that is younger than ten
   * minutes, the retry horizon. Each key costs about 300 bytes, and 50 more per event.
   * @defaultValue 100000
   */
  maxKeys?: number | undefined
  /**
   * How many keys there is room for when more than `maxKeys` are younger than ten minutes. A publisher may have as many keys as
   * are still free. So one publisher alone can take half of the room, two can take a third each, and none can take all. Beyond
   * that, a publish under a new key is rejected with `overloaded` (503 with `Retry-After`): to remember its key, the log would
   * have to forget another key whose publish may still be repeated.
   * @defaultValue 400000 in memory, 1000000 in a log that lasts
   */
  maxRecentKeys?: number | undefined
}

/**
 * A key younger than this is never forgotten. Publishers have to stop retrying by then (§5.5), and Rejoin's own does: a later
 * retry may publish twice.
 */
export const retryHorizonMs = 600_000

export type KeyLimits = Complete<IdempotencyOptions>

/** @param room - the default of `maxRecentKeys` */
export function keyLimits(options: IdempotencyOptions = {}, room = 1_000_000): KeyLimits {
  const { maxAgeMs = 24 * 3_600_000, maxKeys = 100_000, maxRecentKeys = room } = options
  return { maxAgeMs, maxKeys, maxRecentKeys: Math.max(maxRecentKeys, maxKeys) }
}

/** Whether a log with this number of keys forgets a key of this age. */
export function isForgotten(ageMs: number, keys: number, { maxAgeMs, maxKeys }: KeyLimits): boolean {
  return ageMs > maxAgeMs || (keys > maxKeys && ageMs > retryHorizonMs)
}

/** Whether there are so many keys that the share of each publisher is bounded. */
export function isCrowded(keys: number, { maxRecentKeys }: KeyLimits): boolean {
  return keys * 2 >= maxRecentKeys
}

/** Rejects one more key of a publisher that has `own` of all `keys`, when it has as many as are free. */
export function admitKey(own: number, keys: number, { maxRecentKeys }: KeyLimits): void {
  if (own >= maxRecentKeys - keys) throw noRoomForKeys()
}

export function noRoomForKeys(): RejoinError {
  return new RejoinError(
    'There is no room for another Idempotency-Key of this publisher: keys of the last ten minutes are not forgotten. ' +
      'Publish in batches, which need one key each, or try again later; maxRecentKeys is the limit.',
    { code: 'overloaded', retryable: true },
  )
}

export function keyReused(): RejoinError {
  return new RejoinError('This Idempotency-Key was used for another publish. Use a new key for a new event.', {
    code: 'key-reused',
  })
}

/**
 * Since when a log knows its keys. A key has the time of its publish, and the clock may have been ahead at that time. Such a key
 * would outlive all others, and no key behind it would be forgotten.
 */
export interface KeyTimes<Rank> {
  /** Called with the time, and the rank of the newest key. When the clock went back, all keys so far count from now on. */
  learn(now: number, newest: Rank): void
  /** The time from which the age of a key is counted. */
  since(at: number, rank: Rank): number
}

/** @param isAfter - compares the ranks of keys in the order in which the log remembered them */
export function createKeyTimes<Rank>(isAfter: (a: Rank, b: Rank) => boolean): KeyTimes<Rank> {
  let last = Number.POSITIVE_INFINITY
  let known: { through: Rank; at: number } | undefined
  return {
    learn(now, newest) {
      if (now < last) known = { through: newest, at: now }
      last = now
    },
    since: (at, rank) => (known && !isAfter(rank, known.through) ? Math.min(at, known.at) : at),
  }
}

export function createIdempotency<Result>(options?: IdempotencyOptions): Idempotency<Result> {
  const limits = keyLimits(options, 400_000)
  // Oldest first: the log forgets keys in the order in which it remembered them.
  const known = new Map<string, { scope: string; hash: string; result: Result; at: number; number: number }>()
  const times = createKeyTimes<number>((a, b) => a > b)
  let newest = 0
  const owned = new Map<string, number>()

  function own(scope: string, change: number): void {
    const count = (owned.get(scope) ?? 0) + change
    if (count > 0) owned.set(scope, count)
    else owned.delete(scope)
  }

  function forgetOld(now: number): void {
    times.learn(now, newest)
    for (const [id, { at, scope, number }] of known) {
      if (!isForgotten(now - times.since(at, number), known.size, limits)) return
      known.delete(id)
      own(scope, -1)
    }
  }

  return {
    earlier({ scope, key, hash }, now) {
      forgetOld(now)
      const found = known.get(idOf(scope, key))
      if (!found) return undefined
      if (found.hash === hash) return found.result
      throw keyReused()
    },
    admit({ scope }) {
      if (isCrowded(known.size, limits)) admitKey(owned.get(scope) ?? 0, known.size, limits)
    },
    remember({ scope, key, hash }, result, now) {
      newest += 1
      known.set(idOf(scope, key), { scope, hash, result, at: now, number: newest })
      own(scope, 1)
      forgetOld(now)
    },
  }
}

// No header and no subject contains a line break, so no two pairs of scope and key have the same id.
function idOf(scope: string, key: string): string {
  return `${scope}\n${key}`
}
