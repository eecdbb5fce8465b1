import type { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { asksForEvents, connectionOf, rejectReader } from '@rejoin/hub/internal'
import type { Middleware } from '../http/middleware.ts'
import { tellRejection } from '../http/rejection.ts'

/**
 * Rejects a reader while other readers use all connections that are for readers, so that connections are left for short requests.
 * Connections are counted, not streams: over HTTP/2 the streams of a page share one connection.
 */
export function keepRoom({ room, retryMs, onReject }: RoomOptions): Middleware {
  const readers = new Map<EventEmitter, number>()
  const known = new WeakSet<EventEmitter>()

  function leave(connection: EventEmitter): void {
    const left = (readers.get(connection) ?? 0) - 1
    if (left > 0) readers.set(connection, left)
    else readers.delete(connection)
  }

  // One function for all responses: a closure for each would take memory for as long as its stream is open.
  function leaveSocket(this: ServerResponse): void {
    leave(this.req.socket)
  }

  function enter(connection: EventEmitter, response: ServerResponse): void {
    readers.set(connection, (readers.get(connection) ?? 0) + 1)
    if (connection === response.socket) {
      response.on('close', leaveSocket)
      return
    }
    response.once('close', () => leave(connection))
    if (known.has(connection)) return
    known.add(connection)
    // A response that waits behind another gets no 'close' when their connection closes.
    connection.once('close', () => readers.delete(connection))
  }

  return (request, response) => {
    if (!asksForEvents(request)) return false
    const connection = connectionOf(response)
    if (readers.has(connection) || readers.size < room) {
      enter(connection, response)
      return false
    }
    onReject('connections')
    // Kept alive for a next request, the connection would use the room that it was just denied.
    if (request.httpVersionMajor === 1) response.setHeader('Connection', 'close')
    const status = rejectReader(request, response, {
      reason: 'overloaded',
      // The same random spread as in the hub, which has not seen this reader.
      retryMs: Math.round(Math.min(60_000, retryMs() * (1 + 4 * Math.random()))),
    })
    tellRejection(response, 'connections', status)
    return true
  }
}

export interface RoomOptions {
  /** Connections that readers may have. */
  readonly room: number
  /** The base retry time, without load. */
  retryMs(): number
  onReject(kind: 'connections'): void
}
