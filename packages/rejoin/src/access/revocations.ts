import { RejoinError } from '@rejoin/protocol'
import type { Identity } from './identity.ts'

/**
 * Who is not let in any more although their token or key is good. Kept in memory. With a shared log, the hub
 * tells it again after a restart; with another, a restart forgets it.
 */
export interface Revocations {
  add(subject: string, options: RevokeOptions): void
  has(identity: Identity): boolean
}

export interface RevokeOptions {
  /**
   * Only the token of this `jti`. Left out, everything the subject was given until now is refused: its tokens by their
   * `iat`, those without one, and its API key.
   */
  jti?: string
  /**
   * Milliseconds since 1970 until which to remember it: the `exp` of the token, or of the last one that was given out.
   * @defaultValue until the program ends
   */
  until?: number
  /**
   * When it was said, in milliseconds since 1970: on another hub, a moment ago.
   * @defaultValue now
   */
  at?: number
}

// About 2 MB. More than that is a change of keys.
const maxRevocations = 10_000

export function createRevocations(now: () => number): Revocations {
  const revoked = new Map<string, { at: number; until: number }>()

  function forgetOld(): void {
    for (const [key, { until }] of revoked) {
      if (until <= now()) revoked.delete(key)
    }
  }

  return {
    add(subject, { jti, until = Number.POSITIVE_INFINITY, at = now() }) {
      const key = keyOf(subject, jti)
      if (revoked.size >= maxRevocations && !revoked.has(key)) forgetOld()
      // To forget one instead would let somebody back in.
      if (revoked.size >= maxRevocations && !revoked.has(key)) {
        throw new RejoinError(
          `${maxRevocations} revocations are remembered, and there is no room for more. Sign with a new key instead.`,
          { code: 'overloaded' },
        )
      }
      revoked.set(key, { at, until })
    },
    has({ grant: { subject }, issuedAt, jti }) {
      if (revoked.size === 0) return false
      if (jti !== undefined && isInForce(revoked.get(keyOf(subject, jti)))) return true
      const all = revoked.get(keyOf(subject))
      // `iat` counts seconds: a token of the second in which its subject was revoked may be from before that.
      return all !== undefined && isInForce(all) && (issuedAt === undefined || issuedAt <= all.at)
    },
  }

  function isInForce(entry: { until: number } | undefined): boolean {
    return entry !== undefined && entry.until > now()
  }
}

function keyOf(subject: string, jti?: string): string {
  return JSON.stringify(jti === undefined ? [subject] : [subject, jti])
}
