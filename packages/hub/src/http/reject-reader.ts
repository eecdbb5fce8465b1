import type { IncomingMessage, ServerResponse } from 'node:http'
import type { CloseReason } from '@rejoin/protocol'
import type { ReaderRejection } from '../hub/readers/subscribe-request.ts'
import { type Answer, closedStream, readerRejection } from './answer.ts'
import { readsStatus } from './poll.ts'
import { sendPlainAnswer } from './send.ts'
import { type Target, targetOf } from './target.ts'

/**
 * Rejects a reader that the hub has not seen yet, and tells it when to return. Polls, and readers that send `?reject=status`, get
 * a status. All others get a stream that ends at once: a native `EventSource` returns after no status but 200 (§4.12).
 *
 * @returns the status of the response
 */
export function rejectReader(request: IncomingMessage, response: ServerResponse, why: StreamRejection): number {
  const answer = rejectedReader(targetOf(request), why)
  sendPlainAnswer(response, answer)
  return answer.status
}

/** The answer by which `rejectReader` rejects. */
export function rejectedReader(target: Target, why: StreamRejection): Answer {
  return readsStatus(target) ? readerRejection(why) : closedStream(why.reason, why.retryMs)
}

/** `retryMs` needs a random part (§4.11): otherwise all rejected readers return at the same moment. */
type StreamRejection = ReaderRejection & { readonly reason: CloseReason }
