import { RejoinError } from '@rejoin/protocol'

/** The error of a request whose body or query cannot be used. The message says what to send. */
export function invalidData(message: string): RejoinError {
  return new RejoinError(message, { code: 'invalid-data' })
}

/** The error of a setting or a flag that cannot be used. The message says what to give. */
export function invalidOption(message: string): RejoinError {
  return new RejoinError(message, { code: 'invalid-option' })
}
