import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { resetSocket } from './reset.ts'

/**
 * Bounds the requests that wait behind others on one HTTP/1 connection (RFC 9112, section 9.3.2). Node hands over all requests of
 * one packet, perhaps a thousand, within one turn, and keeps each with its answer until the answers before it are out: behind a
 * stream, for ever. No browser and no proxy pipelines, so a connection with more than 32 requests in wait is reset.
 *
 * Call it first, whatever the request is for: what waits costs memory before anybody has looked at it. A request that is counted
 * twice, by a server and by a handler behind it, counts once.
 *
 * @param onReset - called when this request was one too many
 * @returns whether to go on with the request; false when its connection is gone
 */
export function countPipelined(request: IncomingMessage, response: ServerResponse, onReset?: () => void): boolean {
  // Over HTTP/2 each response has a stream of its own.
  if (request.httpVersionMajor !== 1) return true
  const { socket } = request
  if (socket.destroyed) return false
  if (response.socket !== null) return true
  let waiting = waitingOn.get(socket)
  if (!waiting) {
    waiting = new Set()
    waitingOn.set(socket, waiting)
  }
  if (waiting.has(response)) return true
  waiting.add(response)
  if (waiting.size > maxWaiting) {
    ignoreRest(socket)
    resetSocket(socket)
    onReset?.()
    return false
  }
  response.once('socket', leave)
  return true
}

/** Resolves when a response is the next one on its connection. That is at once, unless its request was pipelined. */
export async function inTurn(response: ServerResponse): Promise<void> {
  if (response.socket !== null) return
  // Never resolves when the connection is lost first: then there is nobody to answer, and nothing to undo.
  await new Promise((resolve) => response.once('socket', resolve))
}

/** A handler for Node's requests that counts each of them first. */
export function boundPipelining<Call extends [request: IncomingMessage, response: ServerResponse, ...rest: unknown[]]>(
  handler: (...call: Call) => unknown,
): (...call: Call) => void {
  return (...call) => {
    if (countPipelined(call[0], call[1])) handler(...call)
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
/** The responses that wait on a connection. */
const waitingOn = new WeakMap<Socket, Set<ServerResponse>>()
