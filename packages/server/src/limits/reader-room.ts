import type { IncomingMessage } from 'node:http'
import { doorOf, readerDoors } from '../doors.ts'
import type { Middleware } from '../middleware.ts'
import { turnAway } from '../turn-away.ts'

/** Turns readers away while so few connections are left that they are needed for requests that are soon over. */
export function keepRoom({ isCrowded, retryMs, onReject }: RoomOptions): Middleware {
  return (request, response) => {
    if (!isReader(request) || !isCrowded()) return false
    onReject('connections')
    // Kept open for another request, it would take up the room it was refused.
    if (request.httpVersionMajor === 1) response.setHeader('Connection', 'close')
    turnAway(request, response, {
      reason: 'overloaded',
      message: 'The hub has no room for this reader now. Retry-After says when to return.',
      // Spread as wide as by the hub itself, which has not seen this reader.
      retryMs: Math.round(Math.min(60_000, retryMs() * (1 + 4 * Math.random()))),
    })
    return true
  }
}

export interface RoomOptions {
  isCrowded(): boolean
  /** What readers wait in calm times. */
  retryMs(): number
  onReject(kind: 'connections'): void
}

function isReader(request: IncomingMessage): boolean {
  return request.method === 'GET' && readerDoors.has(doorOf(request))
}
