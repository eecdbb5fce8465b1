import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

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

/** The stream behind a response of HTTP/2; undefined for HTTP/1. Other streams share its socket. */
export function http2StreamOf(response: ServerResponse): ServerHttp2Stream | undefined {
  return (response as { stream?: ServerHttp2Stream }).stream
}

/**
 * Ends a connection by a RST, which waits for nothing. In Node 20.20, a reset fails after the last byte is out and before the FIN
 * is: the socket counts as closing, never closes, and keeps the process alive. No bytes wait in that state, so an ordinary
 * `destroy` ends the connection as fast. A TLS socket cannot be reset, so it is destroyed, too.
 */
export function resetSocket(socket: Socket): void {
  if ((socket as Partial<TLSSocket>).encrypted) socket.destroy()
  else if (socket.writableEnded && !socket.writableFinished && socket.writableLength === 0) socket.destroy()
  else socket.resetAndDestroy()
}
