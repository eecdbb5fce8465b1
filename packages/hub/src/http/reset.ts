import type { Socket } from 'node:net'

/**
 * Ends a connection by a RST, which waits for nothing. Between the last byte and the FIN behind it that fails in Node (20.20):
 * the socket then counts as closing, never closes, and the process can never end. Nothing is left to wait for there, so an
 * ordinary end will do.
 */
export function resetSocket(socket: Socket): void {
  if (socket.writableEnded && !socket.writableFinished && socket.writableLength === 0) socket.destroy()
  else socket.resetAndDestroy()
}
