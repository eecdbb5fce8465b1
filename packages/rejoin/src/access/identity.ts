import type { Grant } from '@rejoin/hub'
import { RejoinError } from '@rejoin/protocol'

/** The owner of a token or a key, with the facts by which it can be revoked. */
export interface Identity {
  readonly grant: Grant & { readonly subject: string }
  /** When the token was made (`iat`), in milliseconds since 1970. Left out for a key, and for a token without `iat`. */
  readonly issuedAt?: number
  /** The token's own name, if it has one. */
  readonly jti?: string
}

/** Rejects a credential that is not good. `message` must never repeat the credential. */
export function notGood(message: string): RejoinError {
  return new RejoinError(message, { code: 'unauthorized' })
}

/** A mistake of the operator in the access rules, found when they are read. */
export function badRule(message: string, cause?: unknown): RejoinError {
  return new RejoinError(message, { code: 'invalid-option', cause })
}
