import type { EventEmitter } from 'node:events'
import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { asksForEvents, connectionOf, rejectReader } from '@rejoin/hub/internal'
import type { Middleware } from '../http/chain.ts'
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

/**
 * How many connections may be open; undefined when the system does not tell its limit. Some file descriptors stay reserved for
 * the log, the admin port and files. Otherwise a client that opens idle connections could stop the log from working.
 */
export function connectionRoom(limitsFile = '/proc/self/limits'): number | undefined {
  const most = Number(/^Max open files +(\d+)/m.exec(read(limitsFile))?.[1])
  return most > 0 ? most - Math.min(reserved, Math.ceil(most / 2)) : undefined
}

/**
 * How many of the connections readers may use. Readers stay for hours, so some connections stay reserved for publishers and
 * health checks.
 */
export function readerRoom(connections: number): number {
  return connections - Math.min(reservedForOthers, Math.ceil(connections / 8))
}

/** With more connections than this, idle ones are closed: half of what is reserved for others is left for the next moment. */
export function evictionRoom(connections: number): number {
  return connections - Math.floor((connections - readerRoom(connections)) / 2)
}

// The program itself has about thirty descriptors open, and asks snapshot webhooks over 32 at most. The rest is for admins and for
// files that are open for a moment.
const reserved = 128
// A publish on a new connection uses it for a few milliseconds, so 256 connections carry many thousand publishes a second.
const reservedForOthers = 256

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // Not Linux, or a system without /proc: the limit is unknown.
    return ''
  }
}
