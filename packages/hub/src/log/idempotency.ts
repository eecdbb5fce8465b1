import { RejoinError } from '@rejoin/protocol'

/** What publishes were already made under which key, for a bounded time and number of keys. */
export interface Idempotency<Result> {
  /** The result of an earlier publish under this key. Throws `key-reused` when that one said something else. */
  earlier(once: Once, now: number): Result | undefined
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
   * How long a key is remembered, in milliseconds. A publisher that retries later than that publishes twice.
   * @defaultValue 86400000 (a day)
   */
  maxAgeMs?: number
  /**
   * How many keys are remembered over all publishers; beyond that the oldest go. Each costs about 300 bytes, and 50 per event.
   * @defaultValue 100000
   */
  maxKeys?: number
}

export function createIdempotency<Result>({
  maxAgeMs = 24 * 3_600_000,
  maxKeys = 100_000,
}: IdempotencyOptions = {}): Idempotency<Result> {
  // In the order in which they were remembered, which is the order in which they go.
  const known = new Map<string, { hash: string; result: Result; at: number }>()

  function forgetOld(now: number): void {
    for (const [id, { at }] of known) {
      if (known.size <= maxKeys && now - at <= maxAgeMs) return
      known.delete(id)
    }
  }

  return {
    earlier({ scope, key, hash }, now) {
      forgetOld(now)
      const found = known.get(idOf(scope, key))
      if (!found) return undefined
      if (found.hash === hash) return found.result
      throw new RejoinError('This Idempotency-Key was used for another publish. Use a new key for a new event.', {
        code: 'key-reused',
      })
    },
    remember({ scope, key, hash }, result, now) {
      known.set(idOf(scope, key), { hash, result, at: now })
      forgetOld(now)
    },
  }
}

// A line break is in no header and no subject, so no two pairs meet.
function idOf(scope: string, key: string): string {
  return `${scope}\n${key}`
}
