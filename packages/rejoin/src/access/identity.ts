import type { Grant } from '@rejoin/hub'
import { RejoinError } from '@rejoin/protocol'

/** Whom a token or a key speaks for, and by what it can be revoked. */
export interface Identity {
  readonly grant: Grant & { readonly subject: string }
  /** Milliseconds since 1970 at which the token was made, as far as it says. A key does not. */
  readonly issuedAt?: number
  /** The token's own name, as far as it has one. */
  readonly jti?: string
}

/** The rejection of something that was presented and is not good. It never repeats what that was. */
export function notGood(message: string): RejoinError {
  return new RejoinError(message, { code: 'unauthorized' })
}

/** A mistake of the operator, found when the rules are read. */
export function badRule(message: string, cause?: unknown): RejoinError {
  return new RejoinError(message, { code: 'invalid-option', cause })
}
