import type { ServerResponse } from 'node:http'
import { rejection, sendPlainAnswer, wrongMethod } from '@rejoin/hub/internal'
import { type ErrorCode, RejoinError } from '@rejoin/protocol'

/**
 * Answers with the JSON object of every rejection (§5.7). The code decides the status.
 *
 * @param reason - the reason for the operator, when it is more precise than the code
 */
export function reject(response: ServerResponse, code: ErrorCode, message: string, reason?: string): void {
  rejectError(response, new RejoinError(message, { code }), reason)
}

/** Like `reject`, for an error. An error that is no `RejoinError` is answered without details. */
export function rejectError(
  response: ServerResponse,
  error: unknown,
  reason: string = error instanceof RejoinError ? error.code : 'internal',
): void {
  const answer = rejection(error)
  tellRejection(response, reason, answer.status)
  sendPlainAnswer(response, answer)
}

/** Tells the listener of this response (`rejected-requests.ts`), if there is one, that the request was rejected. */
export function tellRejection(response: ServerResponse, reason: string, status: number): void {
  response.emit('rejected', reason, status)
}

/** Rejects a method that the path does not take. `allowed` names the methods that it takes. */
export function rejectMethod(response: ServerResponse, ...allowed: string[]): void {
  sendPlainAnswer(response, wrongMethod(...allowed))
}
