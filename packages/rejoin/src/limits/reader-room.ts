import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import { isReaderEndpoint, rejectReader, targetOf } from '@rejoin/hub/internal'
import type { Middleware } from '../http/middleware.ts'
import { tellRejection } from '../http/rejection.ts'

/**
 * Rejects readers while others have all the connections that are for readers, so that some are left for short requests.
 * Connections are counted, not streams: over HTTP/2 the streams of a page share one.
 */
export function keepRoom({ room, retryMs, onReject }: RoomOptions): Middleware {
  const readers = new Map<ReaderConnection, number>()
  const known = new WeakSet<ReaderConnection>()

  function leave(connection: ReaderConnection): void {
    const left = (readers.get(connection) ?? 0) - 1
    if (left > 0) readers.set(connection, left)
    else readers.delete(connection)
  }

  // One function for all responses: a new one for each would be memory for as long as a stream is open.
  function leaveSocket(this: ServerResponse): void {
    leave(this.req.socket)
  }

  function enter(connection: ReaderConnection, response: ServerResponse): void {
    readers.set(connection, (readers.get(connection) ?? 0) + 1)
    if (connection === response.socket) {
      response.on('close', leaveSocket)
      return
    }
    response.once('close', () => leave(connection))
    if (known.has(connection)) return
    known.add(connection)
    // A response that waits behind another on its connection is not told when that goes.
    connection.once('close', () => readers.delete(connection))
  }

  return (request, response) => {
    if (!isReader(request)) return false
    const connection = connectionOf(request)
    if (readers.has(connection) || readers.size < room) {
      enter(connection, response)
      return false
    }
    onReject('connections')
    // Kept open for another request, it would take up the room it was rejected.
    if (request.httpVersionMajor === 1) response.setHeader('Connection', 'close')
    const status = rejectReader(request, response, {
      reason: 'overloaded',
      // Spread as wide as by the hub itself, which has not seen this reader.
      retryMs: Math.round(Math.min(60_000, retryMs() * (1 + 4 * Math.random()))),
    })
    tellRejection(response, 'connections', status)
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
interface ReaderConnection {
  once(event: 'close', listener: () => void): unknown
}

function connectionOf(request: IncomingMessage): ReaderConnection {
  if (request.httpVersionMajor === 1) return request.socket
  const { stream } = request as unknown as Http2ServerRequest
  return stream.session ?? stream
}

function isReader(request: IncomingMessage): boolean {
  return request.method === 'GET' && isReaderEndpoint(targetOf(request).endpoint)
}
