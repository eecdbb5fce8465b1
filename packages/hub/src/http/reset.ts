import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

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
