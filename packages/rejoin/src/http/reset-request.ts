import type { IncomingMessage } from 'node:http'
import { constants, type Http2ServerRequest } from 'node:http2'
import { TLSSocket } from 'node:tls'
import { resetSocket } from '@rejoin/hub/internal'

/** Breaks the connection of a request. Over HTTP/2 it breaks the stream alone, because other requests share the socket. */
export function resetRequest(request: IncomingMessage | Http2ServerRequest): void {
  if ('stream' in request) request.stream.close(constants.NGHTTP2_CONNECT_ERROR)
  // Node resets TCP sockets only. For a reader, TLS without its closing message is as broken as a reset.
  else if (request.socket instanceof TLSSocket) request.socket.destroy()
  else resetSocket(request.socket)
}
