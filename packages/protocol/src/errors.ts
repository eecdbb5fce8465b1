/**
 * The only error class of Rejoin. A `RejoinError` tells of a mistake of the caller, or of a failure that the caller
 * cannot fix; its message says what to do. A gap is no error: it is an event on the stream.
 */
export class RejoinError extends Error {
  override readonly name = 'RejoinError'
  /** What went wrong, as one of `errorCodes`. Stable across versions, unlike the message. */
  declare readonly code: ErrorCode
  /** Whether the same call may succeed later without being changed. */
  declare readonly retryable: boolean

  constructor(message: string, details: { code: ErrorCode; retryable?: boolean; cause?: unknown }) {
    super(message, details)
    this.code = details.code
    this.retryable = details.retryable ?? false
  }
}

/** Every code an error of Rejoin can carry. `docs/reference/errors.md` has one heading for each. */
export const errorCodes = [
  'address-in-use',
  'channel-deleted',
  'channel-ended',
  'closed',
  'forbidden',
  'internal',
  'invalid-channel',
  'invalid-data',
  'invalid-event',
  'invalid-option',
  'invalid-type',
  'key-reused',
  'log-unavailable',
  'not-found',
  'overloaded',
  'rate-limited',
  'too-large',
  'unauthorized',
  'unreachable',
  'wrong-method',
] as const

export type ErrorCode = (typeof errorCodes)[number]
