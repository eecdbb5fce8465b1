import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { resetSocket } from './connection.ts'

/**
 * Bounds the requests that are pipelined on one HTTP/1 connection (RFC 9112, section 9.3.2). Node hands over all requests of one
 * packet, perhaps a thousand, within one turn, and keeps each with its answer until the answers before it are out: behind a stream,
 * for ever. No browser and no proxy pipelines, so a connection is reset when more than 32 requests wait on it, or when it brings
 * more than 64 in one turn of the event loop, although they may all have been answered.
 *
 * Every request of the server counts, whatever it is for, before any other listener gets it: an application's own answers wait
 * behind a stream of the hub like the hub's.
 *
 * @param onReset - called when a connection is reset
 */
export function boundRequests(server: RequestEmitter, onReset?: () => void): void {
  bounded.add(server)
  server.prependListener('request', (request, response) => void count(request, response, onReset))
}

/** A server of Node, as far as its requests are concerned. */
export interface RequestEmitter {
  prependListener(event: 'request', listener: (request: IncomingMessage, response: ServerResponse) => void): unknown
}

/**
 * Bounds the server of a request that comes to an adapter, unless that is done already.
 *
 * @returns whether to go on with the request; false when its connection was reset
 */
export function isWithinBounds(request: IncomingMessage, response: ServerResponse): boolean {
  // Over HTTP/2 each response has a stream of its own.
  if (request.httpVersionMajor !== 1) return true
  const { server } = request.socket as { server?: Server }
  if (server && bounded.has(server)) return !request.socket.destroyed
  // A connection that was handed to this server has another one here, which gets no requests.
  if (server && server.listenerCount('request') > 0) boundRequests(server)
  return count(request, response)
}

function count(request: IncomingMessage, response: ServerResponse, onReset?: () => void): boolean {
  if (request.httpVersionMajor !== 1) return true
  const { socket } = request
  if (socket.destroyed) return false
  if (isWithinTurn(socket) && isWithinWaiting(socket, response)) return true
  ignoreRest(socket)
  resetSocket(socket)
  onReset?.()
  return false
}

function isWithinTurn(socket: Socket): boolean {
  if (inTurnOf.size === 0) setImmediate(() => inTurnOf.clear())
  const count = (inTurnOf.get(socket) ?? 0) + 1
  inTurnOf.set(socket, count)
  return count <= maxPerTurn
}

function isWithinWaiting(socket: Socket, response: ServerResponse): boolean {
  if (response.socket !== null) return true
  let waiting = waitingOn.get(socket)
  if (!waiting) {
    waiting = new Set()
    waitingOn.set(socket, waiting)
  }
  waiting.add(response)
  response.once('socket', leave)
  return waiting.size <= maxWaiting
}

/** Resolves when a response is the next one on its connection. That is at once, unless its request was pipelined. */
export async function inTurn(response: ServerResponse): Promise<void> {
  if (response.socket !== null) return
  // Never resolves when the connection is lost first: then there is nobody to answer, and nothing to undo.
  await new Promise((resolve) => response.once('socket', resolve))
}

/** A handler for Node's requests, for those whose connection is within its bounds. */
export function boundPipelining<Call extends [request: IncomingMessage, response: ServerResponse, ...rest: unknown[]]>(
  handler: (...call: Call) => unknown,
): (...call: Call) => void {
  return (...call) => {
    if (isWithinBounds(call[0], call[1])) handler(...call)
  }
}

/**
 * Makes Node's parser skip the rest of the packet. Otherwise Node makes a request and a response of each of its 1,700 requests,
 * and keeps them until the connection has closed, after it has read every other connection with such a packet: 360 of them end a
 * process with 400 MB. Undocumented, but without effect where it is not so: `lib/_http_common.js` takes 2 for "what follows is not
 * HTTP", and sets a new `onIncoming` for each connection.
 */
function ignoreRest(socket: Socket & { parser?: { onIncoming?: unknown } | null }): void {
  if (socket.parser?.onIncoming) socket.parser.onIncoming = () => 2
}

// One function for all responses, instead of a closure for each.
function leave(this: ServerResponse, socket: Socket): void {
  waitingOn.get(socket)?.delete(this)
}

const maxWaiting = 32
const maxPerTurn = 64
/** The servers whose requests are all counted. */
const bounded = new WeakSet<object>()
/** How many requests each connection has brought in this turn. */
const inTurnOf = new Map<Socket, number>()
/** The responses that wait on a connection. */
const waitingOn = new WeakMap<Socket, Set<ServerResponse>>()
