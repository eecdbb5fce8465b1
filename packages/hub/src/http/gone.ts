import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { http2StreamOf } from './http2-stream.ts'

export function hasGone(response: ServerResponse): boolean {
  return response.destroyed || response.closed || http2StreamOf(response)?.destroyed === true
}

/** Calls `cleanUp` once when the reader has gone. */
export function onceGone({ socket }: IncomingMessage, response: ServerResponse, cleanUp: () => void): void {
  if (response.socket) response.once('close', cleanUp)
  else onceQueuedGone(socket, response, cleanUp)
}

/** A response that waits behind another on the same socket has no socket yet, and gets no 'close' when the socket closes. */
function onceQueuedGone(socket: Socket, response: ServerResponse, cleanUp: () => void): void {
  let onSocket = cleanUps.get(socket)
  if (!onSocket) {
    const waiting = new Set<() => void>()
    onSocket = waiting
    cleanUps.set(socket, waiting)
    // One listener per socket, however many requests the socket carries.
    socket.once('close', () => {
      for (const each of waiting) each()
    })
  }
  const listed = onSocket
  const gone = () => {
    if (listed.delete(gone)) cleanUp()
  }
  listed.add(gone)
  response.once('close', gone)
}

const cleanUps = new WeakMap<Socket, Set<() => void>>()
