import type { IncomingMessage } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import { resetSocket } from './connection.ts'

/**
 * Reads the rest of a body that the hub does not want, and throws it away. Unread, it would block the next request of the connection,
 * and Node would keep 500 bytes for each of its chunks: 16,384 chunks of one byte are 8 MB behind each stream, for as long as the
 * stream is open. Such chunks also take a microsecond each to read, so a request with many of them is cut.
 *
 * Call it as soon as it is clear that the body is not wanted. A request without a body, or with all of it, is left alone.
 */
export function discardBody(request: IncomingMessage): void {
  if (!hasBody(request) || request.complete || discarded.has(request)) return
  discarded.add(request)
  let [bytes, parts] = [0, 0]
  // Stays after a cut: without a listener, Node would keep the chunks that are left in its packet.
  request.on('data', (part: Uint8Array) => {
    bytes += part.length
    parts += 1
    if (bytes > maxBytes || parts > maxParts) cutRequest(request)
  })
  // Marks the request as one that is read. Node removes the listeners of any other request once its answer is out.
  request.read(0)
}

function hasBody({ headers, stream }: IncomingMessage & Partial<Pick<Http2ServerRequest, 'stream'>>): boolean {
  if (stream) return !stream.endAfterHeaders
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0
}

function cutRequest({ socket, stream }: IncomingMessage & Partial<Pick<Http2ServerRequest, 'stream'>>): void {
  // Over HTTP/2, other requests share the connection.
  if (stream) stream.close(enhanceYourCalm)
  else if (!socket.destroyed) resetSocket(socket)
}

const discarded = new WeakSet<IncomingMessage>()
// Sixteen times the largest publish. A sender below that reads its answer, and keeps its connection.
const maxBytes = 4 * 1024 * 1024
// Clients send chunks of some kilobytes.
const maxParts = 4096
// ENHANCE_YOUR_CALM (RFC 9113, section 7). A number, because not every platform has `node:http2`.
const enhanceYourCalm = 11
