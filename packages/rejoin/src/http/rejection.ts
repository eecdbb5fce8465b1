import type { ServerResponse } from 'node:http'
import { rejection, sendPlainAnswer, wrongMethod } from '@rejoin/hub/internal'
import { type ErrorCode, RejoinError } from '@rejoin/protocol'

/**
 * Answers with the JSON object that every rejection of Rejoin is (§5.7). Its status goes by the code.
 *
 * @param reason - what the operator is told, where that is more than the code
 */
export function reject(response: ServerResponse, code: ErrorCode, message: string, reason?: string): void {
  rejectError(response, new RejoinError(message, { code }), reason)
}

/** Like `reject`, for an error. One that is not Rejoin's gives no details away. */
export function rejectError(
  response: ServerResponse,
  error: unknown,
  reason: string = error instanceof RejoinError ? error.code : 'internal',
): void {
  const answer = rejection(error)
  tellRejection(response, reason, answer.status)
  sendPlainAnswer(response, answer)
}

/** Tells the one who watches this response, if anybody does (`rejected-requests.ts`), that it is a rejection. */
export function tellRejection(response: ServerResponse, reason: string, status: number): void {
  response.emit('rejected', reason, status)
}

/** Rejects a method that the path does not take; `allowed` are the methods that it does. */
export function rejectMethod(response: ServerResponse, ...allowed: string[]): void {
  sendPlainAnswer(response, wrongMethod(...allowed))
}
