import { RejoinError } from '@rejoin/protocol'
import type { Identity } from './identity.ts'

/**
 * Subjects and tokens that are rejected although their signature or key is good. Kept in memory. After a restart, the hub tells
 * them again, unless its log forgets everything.
 */
export interface Revocations {
  add(subject: string, options: RevokeOptions): void
  has(identity: Identity): boolean
}

export interface RevokeOptions {
  /**
   * Revokes only the token with this `jti`. Left out, everything that the subject has until now is rejected: its tokens with an
   * earlier `iat` or none, and its API key.
   */
  jti?: string
  /**
   * When the revocation may be forgotten, in milliseconds since 1970: the `exp` of the token, or of the subject's last token.
   * @defaultValue until the program ends
   */
  until?: number
  /**
   * The tokens that were issued until then are rejected, in milliseconds since 1970. A revocation from another hub was made a
   * moment ago.
   * @defaultValue now
   */
  at?: number
}

// About 2 MB. An operator who needs more should change the signing key.
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
      // Forgetting an older revocation instead would let its subject in again.
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
      // `iat` has whole seconds: a token from the second of the revocation may be older than the revocation, so it is rejected.
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
