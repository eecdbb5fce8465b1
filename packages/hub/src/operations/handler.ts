import type { IncomingMessage, ServerResponse } from 'node:http'
import { RejoinError } from '@rejoin/protocol'
import { type Answer, rejection, wrongMethod } from '../http/answer.ts'
import { sendPlainAnswer } from '../http/send.ts'
import type { Hub } from '../hub/hub.ts'

/** A handler of Node's own server, of Express and of Connect. */
export type OperationHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  next?: (error?: unknown) => void,
) => void

/** Answers by a function. What it throws of ours is an answer; anything else is told to the hub, and is a 500. */
export function operationHandler(
  hub: Pick<Hub, 'port'>,
  methods: readonly string[],
  answer: (request: IncomingMessage) => Promise<Answer>,
): OperationHandler {
  return async (request, response) => {
    // Whoever goes while it is answered is not worth a word.
    response.on('error', () => response.destroy())
    if (!methods.includes(request.method ?? '')) return sendPlainAnswer(response, wrongMethod(...methods))
    try {
      sendPlainAnswer(response, await answer(request))
    } catch (error) {
      if (response.destroyed) return
      if (!(error instanceof RejoinError)) hub.port.failed(error)
      sendPlainAnswer(response, rejection(error))
    }
  }
}
