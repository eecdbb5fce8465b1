import { RejoinError } from '@rejoin/protocol'

/** What publishes were already made under which key, for a bounded time and number of keys. */
export interface Idempotency<Result> {
  /** The result of an earlier publish under this key. Throws `key-reused` when that one said something else. */
  earlier(once: Once, now: number): Result | undefined
  /** Throws `overloaded` when there is no room for another key of this publisher. */
  admit(once: Once): void
  remember(once: Once, result: Result, now: number): void
}

export interface Once {
  /** Whose keys these are: two publishers may use the same key without meeting. */
  readonly scope: string
  readonly key: string
  /** Of everything that was to be published. */
  readonly hash: string
}

export interface IdempotencyOptions {
  /**
   * How long a key is remembered, in milliseconds. A publisher that retries later than that publishes twice; our own retries
   * for ten minutes at most.
   * @defaultValue 86400000 (a day)
   */
  maxAgeMs?: number
  /**
   * How many keys are remembered over all publishers; beyond that the oldest go, but none that is younger than ten minutes,
   * the retry horizon. Each costs about 300 bytes, and 50 per event.
   * @defaultValue 100000
   */
  maxKeys?: number
  /**
   * How many keys there is room for when more than `maxKeys` are younger than ten minutes. A publisher gets as many as are still
   * free, so one alone can take half of them and none can take all: two that take what they can get have a third each. Beyond
   * that, a publish under a new key is rejected with `overloaded` (503 with `Retry-After`), because remembering it would mean to
   * forget another one that may still be repeated.
   * @defaultValue 400000 in memory, 1000000 in a log that lasts
   */
  maxRecentKeys?: number
}

/**
 * A key younger than this is never forgotten. Publishers that retry have to give up by then (§5.5), as ours does: a retry that
 * comes later may publish twice.
 */
export const retryHorizonMs = 600_000

export type KeyLimits = Required<IdempotencyOptions>

/** @param room - the default of `maxRecentKeys` */
export function keyLimits(options: IdempotencyOptions = {}, room = 1_000_000): KeyLimits {
  const { maxAgeMs = 24 * 3_600_000, maxKeys = 100_000, maxRecentKeys = room } = options
  return { maxAgeMs, maxKeys, maxRecentKeys: Math.max(maxRecentKeys, maxKeys) }
}

/** Whether a key of this age goes when there are so many. */
export function isForgotten(ageMs: number, keys: number, { maxAgeMs, maxKeys }: KeyLimits): boolean {
  return ageMs > maxAgeMs || (keys > maxKeys && ageMs > retryHorizonMs)
}

/** Whether there are so many keys that the share of their publisher counts. */
export function isCrowded(keys: number, { maxRecentKeys }: KeyLimits): boolean {
  return keys * 2 >= maxRecentKeys
}

/** Rejects another key of a publisher that has `own` of all `keys`. Each may have as many as are free. */
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

export function createIdempotency<Result>(options?: IdempotencyOptions): Idempotency<Result> {
  const limits = keyLimits(options, 400_000)
  // In the order in which they were remembered, which is the order in which they go.
  const known = new Map<string, { scope: string; hash: string; result: Result; at: number }>()
  const owned = new Map<string, number>()

  function own(scope: string, change: number): void {
    const count = (owned.get(scope) ?? 0) + change
    if (count > 0) owned.set(scope, count)
    else owned.delete(scope)
  }

  function forgetOld(now: number): void {
    for (const [id, { at, scope }] of known) {
      if (!isForgotten(now - at, known.size, limits)) return
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
      known.set(idOf(scope, key), { scope, hash, result, at: now })
      own(scope, 1)
      forgetOld(now)
    },
  }
}

// A line break is in no header and no subject, so no two pairs meet.
function idOf(scope: string, key: string): string {
  return `${scope}\n${key}`
}
