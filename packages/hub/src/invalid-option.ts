import { RejoinError } from '@rejoin/protocol'

/** The error for an option that cannot be used, or for the folder or server that it names. The message says what to do. */
export function invalidOption(message: string, cause?: unknown): RejoinError {
  return new RejoinError(message, { code: 'invalid-option', ...(cause === undefined ? {} : { cause }) })
}
