import { covers, RejoinError } from '@rejoin/protocol'
import type { Subscription } from '../live/subscription.ts'

/** What one requester may do, as the program's `authorize` says. */
export interface Grant {
  /**
   * Who it is: limits, replaced connections, idempotency keys and revocation go by it. Null for rights that everybody has:
   * nobody is counted, replaced or revoked under them, and a request that they do not cover is answered with 401 (show a
   * token) instead of 403.
   */
  readonly subject: string | null
  /** Channels it may read: names, or prefixes ending in `/*`; `*` is all. */
  readonly subscribe?: readonly string[]
  /** Channels it may publish to, written the same way. */
  readonly publish?: readonly string[]
  /** Milliseconds since 1970 at which its streams are closed with `token-expired`. Left out: never. */
  readonly expiresAt?: number
}

// 1973 in milliseconds, and the year 5138 in seconds: between them no date is the one and means the other.
const earliestExpiry = 1e11

/** Rejects what would end a stream at once although its rights are good, and says how to write it. */
export function checkedGrant(grant: Grant): Grant {
  const { expiresAt } = grant as { expiresAt?: unknown }
  if (expiresAt === undefined || (typeof expiresAt === 'number' && expiresAt >= earliestExpiry)) return grant
  const seconds = typeof expiresAt === 'number' && expiresAt > 0
  throw new RejoinError(
    `authorize gave ${typeof expiresAt === 'string' ? JSON.stringify(expiresAt) : String(expiresAt)} as expiresAt, ` +
      `which is no time in milliseconds since 1970. ${seconds ? 'It looks like seconds, as the exp of a JWT: multiply it by 1000.' : 'Give a number such as Date.now() + 60_000, or leave it out.'}`,
    { code: 'internal' },
  )
}

/** All-or-nothing: a stream that silently left out one channel would look like a quiet one. */
export function maySubscribe(grant: Grant, { channels }: Pick<Subscription, 'channels'>): boolean {
  return channels.every((channel) => matchesAny(grant.subscribe ?? [], channel))
}

export function mayPublish(grant: Grant, channel: string): boolean {
  return matchesAny(grant.publish ?? [], channel)
}

function matchesAny(patterns: readonly string[], name: string): boolean {
  return patterns.some((pattern) => covers(pattern, name))
}
