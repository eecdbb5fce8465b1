import type { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Holder } from '../hub/byte-ledger.ts'
import type { Hub } from '../hub/hub.ts'
import type { Answer } from './answer.ts'
import { http2StreamOf, onceGone, resetSocket } from './connection.ts'
import { discardBody } from './unwanted-body.ts'

/**
 * Sends an answer that is not a stream, and gives it up when its reader does not take it. A short answer on a connection with
 * no bytes in wait is not watched: the system's own buffer holds it. The answer to a single publish is that short.
 *
 * Bytes are sent without a copy. So an answer that many get, such as a page, is in memory once, whoever does not read it.
 */
export function sendAnswer(
  hub: Pick<Hub, 'port'>,
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers, body }: Omit<Answer, 'body'> & { readonly body: string | Uint8Array },
): void {
  const length = Buffer.byteLength(body)
  discardBody(request)
  response.writeHead(status, { ...headers, 'Content-Length': length })
  if (request.method === 'HEAD') {
    response.end()
    return
  }
  const isHttp2 = http2StreamOf(response) !== undefined
  if (length <= shortBytes && !isHttp2 && response.socket?.writableLength === 0) {
    response.end(body)
    return
  }
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const answer = new LongAnswer(response, length)
  const entry = hub.port.memory.answers.send(answer, connectionOf(response))
  onceGone(request, response, () => entry.close())
  response.on('drain', write)
  write()

  /** Writes in pieces, so that `pending` falls while a slow reader takes a long answer. For a dead reader it does not fall. */
  function write(): void {
    while (length - answer.written > pieceBytes) {
      const piece = bytes.subarray(answer.written, answer.written + pieceBytes)
      answer.written += pieceBytes
      if (!response.write(piece)) return
    }
    response.off('drain', write)
    const last = bytes.subarray(answer.written)
    answer.written = length
    response.end(last)
  }
}

class LongAnswer implements Holder {
  /** Bytes that the response has been given. */
  written = 0
  readonly #response: ServerResponse
  readonly #length: number

  constructor(response: ServerResponse, length: number) {
    this.#response = response
    this.#length = length
  }

  get pending(): number {
    return this.#length - this.written + this.#response.writableLength
  }

  evict(): void {
    cut(this.#response)
  }
}

/**
 * Sends a short answer whose reader is not watched, such as a rejection. Over HTTP/2 even a short answer waits for a reader that
 * takes nothing, and its stream would stay open for as long as the connection.
 */
export function sendPlainAnswer(response: ServerResponse, { status, headers, body }: Answer): void {
  discardBody(response.req)
  response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) })
  http2StreamOf(response)?.setTimeout(untakenMs, () => cut(response))
  response.end(body)
}

const untakenMs = 30_000

const shortBytes = 4096
const pieceBytes = 64 * 1024

/** The connection that carries a response: the socket, or the HTTP/2 session that several responses share. */
export function connectionOf(response: ServerResponse): EventEmitter {
  // A response that waits behind another of its connection has no socket yet.
  return http2StreamOf(response)?.session ?? response.socket ?? response.req?.socket ?? response
}

/** Ends a response at once, and drops the bytes in wait. Over HTTP/2 only the stream ends: others share the connection. */
export function cut(response: ServerResponse): void {
  const stream = http2StreamOf(response)
  // A reset, because a FIN would queue behind the bytes that the peer does not read.
  if (stream) stream.close(http2Cancel)
  else if (response.socket) resetSocket(response.socket)
  else response.destroy()
}

// CANCEL (RFC 9113, section 7): the stream is no longer needed. A number, because not every platform has `node:http2`.
const http2Cancel = 8
