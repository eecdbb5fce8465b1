import { type IncomingMessage, OutgoingMessage, type ServerResponse } from 'node:http'
import type { Sink } from '../hub/sink.ts'

/**
 * Writes a session's bytes to a Node response.
 *
 * All readers of a turn share one buffer that is chunk-framed already, so where nothing stands between the response and
 * its socket the buffer goes to the socket as it is. Through `response.write` each reader would get its own chunk header,
 * body and trailer: three writes and three allocations instead of one and none.
 */
export function createResponseSink(
  request: IncomingMessage,
  response: ServerResponse,
  budgetBytes: number,
): DrainableSink {
  const socket = ownSocket(request, response)
  const target = socket ?? response
  const framed = socket !== undefined && response.chunkedEncoding
  // Below its high-water mark a stream emits no 'drain', and a session waiting for one would sleep for ever.
  const limit = Math.max(budgetBytes, target.writableHighWaterMark)
  return {
    write(bytes) {
      target.write(framed ? bytes.chunked : bytes.plain)
      // Judged by what waits, not by the answer of write(): a healthy TLS socket says false at 16 KB and drains at once.
      return target.writableLength <= limit
    },
    get pending() {
      return target.writableLength
    },
    end: () => void response.end(),
    destroy() {
      // A reset, because a FIN would queue behind what the peer does not read.
      if (response.socket) response.socket.resetAndDestroy()
      else response.destroy()
    },
    onDrain(listener) {
      target.on('drain', listener)
      return () => void target.off('drain', listener)
    },
  }
}

export interface DrainableSink extends Sink {
  /** Calls `listener` each time the sink has emptied after it was full. Returns a function that stops it. */
  onDrain(listener: () => void): () => void
}

/**
 * The socket, when bytes may be written past the response: the headers are out, nothing waits in the response (a pipelined
 * request waits there for its predecessor), and nobody has wrapped `write`, as compression middleware does.
 */
function ownSocket(request: IncomingMessage, response: ServerResponse) {
  const direct =
    response.headersSent &&
    response.socket !== null &&
    response.socket === request.socket &&
    response.writableLength === response.socket.writableLength &&
    response.getHeader('content-encoding') === undefined &&
    response.write === OutgoingMessage.prototype.write
  return direct ? response.socket : undefined
}
