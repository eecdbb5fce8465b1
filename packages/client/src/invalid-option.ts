import { RejoinError } from '@rejoin/protocol'

/** @param message - with what to give instead */
export function invalidOption(message: string): RejoinError {
  return new RejoinError(message, { code: 'invalid-option' })
}
