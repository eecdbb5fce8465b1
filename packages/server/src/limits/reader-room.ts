import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import { doorOf, readerDoors } from '../doors.ts'
import type { Middleware } from '../middleware.ts'
import { turnAway } from '../turn-away.ts'

/**
 * Turns readers away while others have all the connections that are for readers, so that some are left for requests that are
 * soon over. Connections are counted, not streams: over HTTP/2 those of a page share one.
 */
export function keepRoom({ room, retryMs, onReject }: RoomOptions): Middleware {
  const readers = new Map<Line, number>()
  const known = new WeakSet<Line>()

  function enter(line: Line, response: ServerResponse): void {
    readers.set(line, (readers.get(line) ?? 0) + 1)
    response.once('close', () => {
      const left = (readers.get(line) ?? 0) - 1
      if (left > 0) readers.set(line, left)
      else readers.delete(line)
    })
    if (known.has(line)) return
    known.add(line)
    // A response that waits behind another on its connection is not told when that goes.
    line.once('close', () => readers.delete(line))
  }

  return (request, response) => {
    if (!isReader(request)) return false
    const line = lineOf(request)
    if (readers.has(line) || readers.size < room) {
      enter(line, response)
      return false
    }
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
  /** Connections that readers may have. */
  readonly room: number
  /** What readers wait in calm times. */
  retryMs(): number
  onReject(kind: 'connections'): void
}

/** The connection of a request, or what stands for it over HTTP/2. */
interface Line {
  once(event: 'close', listener: () => void): unknown
}

function lineOf(request: IncomingMessage): Line {
  if (request.httpVersionMajor === 1) return request.socket
  const { stream } = request as unknown as Http2ServerRequest
  return stream.session ?? stream
}

function isReader(request: IncomingMessage): boolean {
  return request.method === 'GET' && readerDoors.has(doorOf(request))
}
