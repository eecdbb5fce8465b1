import type { IncomingMessage, ServerResponse } from 'node:http'
import { RejoinError } from '@rejoin/protocol'
import { type Answer, rejection, wrongMethod } from '../http/answer.ts'
import { sendAnswer, sendPlainAnswer } from '../http/send.ts'
import type { Hub } from '../hub/hub.ts'

/** A handler for Node's own server, Express and Connect. */
export type OperationHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  next?: (error?: unknown) => void,
) => void

/** Sends the result of `answer`. A `RejoinError` becomes the answer; any other error is told to the hub and answered with 500. */
export function operationHandler(
  hub: Pick<Hub, 'port'>,
  methods: readonly string[],
  answer: (request: IncomingMessage) => Promise<Answer>,
): OperationHandler {
  return async (request, response) => {
    // A requester that leaves before its answer is no failure.
    response.on('error', () => response.destroy())
    if (!methods.includes(request.method ?? '')) return sendPlainAnswer(response, wrongMethod(...methods))
    try {
      sendAnswer(hub, request, response, await answer(request))
    } catch (error) {
      if (response.destroyed) return
      if (!(error instanceof RejoinError)) hub.port.failed(error)
      sendPlainAnswer(response, rejection(error))
    }
  }
}
