import type { IncomingMessage, ServerResponse } from 'node:http'
import { type CloseReason, encodeClose } from '@rejoin/protocol'
import { doorOf } from './doors.ts'
import { refuse } from './refusal.ts'
import { requestTarget } from './request-target.ts'

/**
 * Tells a reader to come back later: polls, and who says so, by a status; others by a stream that ends at once, because one
 * of them may be a native `EventSource`, which never comes back after any other status than 200 (§4.12).
 */
export function turnAway(request: IncomingMessage, response: ServerResponse, away: Away): void {
  const { reason, message, retryMs } = away
  if (doorOf(request) === 'poll' || requestTarget(request).query().get('reject') === 'status') {
    response.setHeader('Retry-After', String(Math.ceil(retryMs / 1000)))
    refuse(response, 503, 'overloaded', message)
    return
  }
  response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8', 'Cache-Control': 'no-store' })
  response.end(encodeClose({ reason }, { retryMs }))
}

export interface Away {
  readonly reason: CloseReason
  /** The same for a person. */
  readonly message: string
  /** When to return. With some chance in it (§4.11), or all would be back at once. */
  readonly retryMs: number
}
