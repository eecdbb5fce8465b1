import type { CloseReason } from '@rejoin/client'
import { type ExitCode, exitCodes } from '../exit-code.ts'
import { type HubAddress, notLetIn } from './hub-address.ts'

/** Why a stream ended that the user did not end. */
export function explainEnd(
  reason: CloseReason | null,
  { url, token }: HubAddress,
): { message: string; exitCode: ExitCode } {
  switch (reason) {
    case 'unauthorized':
      return { message: notLetIn(token), exitCode: exitCodes.notAllowed }
    case 'http-403': {
      const message = 'You may not read all of these channels. See what you may do with: rejoin token explain'
      return { message, exitCode: exitCodes.notAllowed }
    }
    case 'wrong-content-type':
    case 'http-404':
      return { message: `There is no hub at ${url}. Check the address.`, exitCode: exitCodes.rejected }
    case 'http-400':
      return {
        message: `The hub at ${url} does not take this. Give fewer channels, or others.`,
        exitCode: exitCodes.rejected,
      }
    default:
      return { message: `The stream is over: ${reason}.`, exitCode: exitCodes.rejected }
  }
}
