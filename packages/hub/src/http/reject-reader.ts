import type { IncomingMessage, ServerResponse } from 'node:http'
import { type CloseReason, encodeClose } from '@rejoin/protocol'
import type { ReaderRejection } from '../hub/hub.ts'
import { readerRejection } from './answer.ts'
import { sendPlainAnswer } from './send.ts'
import { streamHeaders } from './subscribe.ts'
import { targetOf } from './target.ts'

/**
 * Rejects a reader that the hub has not seen yet, and tells it when to return. Polls, and readers that ask for it, get a
 * status. Others get a stream that ends at once: one of them may be a native `EventSource`, which returns after no status
 * but 200 (§4.12).
 *
 * @returns the status it got
 */
export function rejectReader(request: IncomingMessage, response: ServerResponse, why: StreamRejection): number {
  const { endpoint, query } = targetOf(request)
  if (endpoint === 'poll' || query.get('reject') === 'status') {
    const answer = readerRejection(why)
    sendPlainAnswer(response, answer)
    return answer.status
  }
  response.writeHead(200, streamHeaders(true))
  response.end(encodeClose({ reason: why.reason }, { retryMs: why.retryMs }))
  return 200
}

/** Its `retryMs` needs some chance in it (§4.11), or all readers would be back at once. */
type StreamRejection = ReaderRejection & { readonly reason: CloseReason }
