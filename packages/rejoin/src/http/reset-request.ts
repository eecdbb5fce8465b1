import type { IncomingMessage } from 'node:http'
import { constants, type Http2ServerRequest } from 'node:http2'
import { TLSSocket } from 'node:tls'
import { resetSocket } from '@rejoin/hub/internal'

/** Breaks the connection of a request. Over HTTP/2 the stream alone, because other requests are on the same socket. */
export function resetRequest(request: IncomingMessage | Http2ServerRequest): void {
  if ('stream' in request) request.stream.close(constants.NGHTTP2_CONNECT_ERROR)
  // Only TCP can be reset. To who reads, an end of TLS that was not announced is no better.
  else if (request.socket instanceof TLSSocket) request.socket.destroy()
  else resetSocket(request.socket)
}
