import { covers, RejoinError } from '@rejoin/protocol'
import type { Subscription } from '../live/subscription.ts'

/** What a requester may do, as the program's `authorize` says. */
export interface Grant {
  /**
   * Who the requester is. Limits, replaced connections, idempotency keys and revocations go by the subject. Null for rights that
   * everybody has: limits, replacement and revocation do not apply to them, and a request beyond them is answered with 401 (show
   * a token) instead of 403.
   */
  readonly subject: string | null
  /** Channels that the requester may read: names, or prefixes that end in `/*`. `*` is all channels. */
  readonly subscribe?: readonly string[] | undefined
  /** Channels that the requester may publish to, written like `subscribe`. */
  readonly publish?: readonly string[] | undefined
  /** When the streams of the requester are closed with `token-expired`, in milliseconds since 1970. Left out: never. */
  readonly expiresAt?: number | undefined
}

/** What a connected reader may do, and how to ask again. */
export interface Rights {
  readonly grant: Grant
  /** Asks for the rights again; left out, the rights are good until they expire or are revoked. */
  readonly renew?: () => Promise<Grant | null>
  /** `hub.port.revocations` from before the rights were asked for. A later revocation counts for these rights too. */
  readonly asOf?: number
}

/** A client over all its connections. */
export interface Client {
  readonly id: string
  readonly attempt: number
}

// As milliseconds this is in 1973, as seconds in the year 5138. So a smaller number is a time in seconds, by mistake.
const earliestExpiry = 1e11

/** Rejects an `expiresAt` that is no time in milliseconds. It would end each stream at once although the rights are good. */
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

/** All channels or none: a stream that left out a channel would look as if that channel were quiet. */
export function maySubscribe(grant: Grant, { selectors }: Pick<Subscription, 'selectors'>): boolean {
  return selectors.every((selector) => matchesAny(grant.subscribe ?? [], selector))
}

export function mayPublish(grant: Grant, channel: string): boolean {
  return matchesAny(grant.publish ?? [], channel)
}

function matchesAny(patterns: readonly string[], name: string): boolean {
  return patterns.some((pattern) => covers(pattern, name))
}
