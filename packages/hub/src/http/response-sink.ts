import { type IncomingMessage, OutgoingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import type { SharedBytes, Sink } from '../hub/sink.ts'
import { cut } from './send.ts'

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
  return new ResponseSink(ownSocket(request, response), response, budgetBytes)
}

class ResponseSink implements DrainableSink {
  readonly #response: ServerResponse
  readonly #target: Writable
  readonly #framed: boolean
  readonly #limit: number

  constructor(socket: Socket | undefined, response: ServerResponse, budgetBytes: number) {
    this.#response = response
    this.#target = socket ?? response
    this.#framed = socket !== undefined && response.chunkedEncoding
    // Below its high-water mark a stream emits no 'drain', and a session waiting for one would sleep for ever.
    this.#limit = Math.max(budgetBytes, this.#target.writableHighWaterMark)
  }

  write(bytes: SharedBytes): boolean {
    this.#target.write(this.#framed ? bytes.chunked : bytes.plain)
    // Judged by what waits, not by the answer of write(): a healthy TLS socket says false at 16 KB and drains at once.
    return this.#target.writableLength <= this.#limit
  }

  get pending(): number {
    return this.#target.writableLength
  }

  end(): void {
    this.#response.end()
  }

  destroy(): void {
    cut(this.#response)
  }

  onDrain(listener: () => void): () => void {
    this.#target.on('drain', listener)
    return () => void this.#target.off('drain', listener)
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
function ownSocket(request: IncomingMessage, response: ServerResponse): Socket | undefined {
  const direct =
    response.headersSent &&
    response.socket !== null &&
    response.socket === request.socket &&
    response.writableLength === response.socket.writableLength &&
    response.getHeader('content-encoding') === undefined &&
    response.write === OutgoingMessage.prototype.write
  return direct ? (response.socket as Socket) : undefined
}
