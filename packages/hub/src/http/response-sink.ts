import { OutgoingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import type { SharedBytes, Sink } from '../hub/live/sink.ts'
import type { Session } from '../hub/read/session.ts'
import { http2StreamOf } from './connection.ts'
import type { HeadWaiting } from './late-heads.ts'
import { cut } from './send.ts'

/**
 * Writes a session's bytes to a Node response.
 *
 * All readers of a turn share one buffer, which is already framed as an HTTP chunk. Where nothing stands between the response and
 * its socket, the buffer goes to the socket as it is. Through `response.write`, each reader would get its own chunk header, body
 * and trailer: three writes and three allocations instead of one and none.
 *
 * A head that is not sent yet goes out with the first bytes in one system call. A call of its own would be a tenth of the cost of
 * a return. When the first bytes take long, because the log has to be asked, the head goes ahead.
 *
 * A class, because closures take more memory, and ten thousand of these sinks wait at a time.
 */
export class ResponseSink implements Sink, HeadWaiting {
  readonly #response: ServerResponse
  readonly #budgetBytes: number
  #session: Pick<Session, 'drained'> | undefined
  /** The socket or the response that bytes are written to; undefined until the head is sent. */
  #target: Writable | undefined
  #isFramed = false
  #isFull = false

  /** @param isHeadSent - false when the head was given to `writeHead` and is still in the response. */
  constructor(response: ServerResponse, budgetBytes: number, isHeadSent: boolean) {
    this.#response = response
    this.#budgetBytes = budgetBytes
    if (isHeadSent) this.#aim()
  }

  /** From now on, tells this session when the sink was full and has drained. */
  serve(session: Pick<Session, 'drained'>): void {
    this.#session = session
  }

  /** Whether the head is still in the response. */
  get waitsForHead(): boolean {
    return this.#target === undefined
  }

  sendHead(): boolean {
    if (this.#target !== undefined || this.#response.writableEnded || this.#response.destroyed) return false
    this.#response.flushHeaders()
    this.#aim()
    return true
  }

  write(bytes: SharedBytes): boolean {
    // Somebody else may have ended the response, such as middleware with a timeout. On the socket, more bytes would come behind its
    // end, in front of the next response. The session ends when the response closes.
    if (this.#response.writableEnded) return true
    if (this.#target) this.#put(bytes)
    else this.#putInOneCall('', bytes)
    return this.#hasRoom()
  }

  writeWithText(text: string, bytes: SharedBytes): boolean {
    if (this.#response.writableEnded) return true
    this.#putInOneCall(text, bytes)
    return this.#hasRoom()
  }

  /** Writes text and bytes in one system call, together with the head if the head is not out yet. */
  #putInOneCall(text: string, bytes: SharedBytes): void {
    // Other streams share an HTTP/2 connection, and must not wait for this one.
    const socket = http2StreamOf(this.#response) ? null : this.#response.socket
    socket?.cork()
    this.sendHead()
    if (text !== '') this.#putText(text)
    this.#put(bytes)
    socket?.uncork()
  }

  #put({ chunked, plain }: SharedBytes): void {
    this.#target?.write(this.#isFramed ? chunked : plain)
  }

  #putText(text: string): void {
    const bytes = Buffer.byteLength(text)
    // Node copies text of one byte per character as it is, and has to encode any other.
    const encoding = bytes === text.length ? 'latin1' : 'utf8'
    this.#target?.write(this.#isFramed ? `${bytes.toString(16)}\r\n${text}\r\n` : text, encoding)
  }

  #hasRoom(): boolean {
    const target = this.#target ?? this.#response
    // Below its high-water mark a stream emits no 'drain', and a session that waits for one would sleep for ever.
    const limit = Math.max(this.#budgetBytes, target.writableHighWaterMark)
    // Judged by the bytes in wait, not by the result of write(): a healthy TLS socket returns false at 16 KB and drains at once.
    if (this.pending <= limit) return true
    this.#listen()
    return false
  }

  #aim(): void {
    const socket = ownSocket(this.#response)
    this.#target = socket ?? this.#response
    this.#isFramed = socket !== undefined && this.#response.chunkedEncoding
  }

  /** Listens only while the sink is full: most sinks never are, and a listener for each would take memory. */
  #listen(): void {
    if (this.#isFull || !this.#target) return
    this.#isFull = true
    this.#target.once('drain', () => {
      this.#isFull = false
      this.#session?.drained()
    })
  }

  get pending(): number {
    return (this.#target ?? this.#response).writableLength
  }

  end(): void {
    this.#response.end()
  }

  destroy(): void {
    cut(this.#response)
  }
}

/**
 * The socket, when bytes may be written past the response. Then the headers are out, nothing waits in the response (a pipelined
 * response waits there for its predecessor), and no middleware, such as compression, has wrapped `write`.
 */
function ownSocket(response: ServerResponse): Socket | undefined {
  const direct =
    response.headersSent &&
    response.socket !== null &&
    response.socket === response.req.socket &&
    response.writableLength === response.socket.writableLength &&
    response.getHeader('content-encoding') === undefined &&
    response.write === OutgoingMessage.prototype.write
  return direct ? (response.socket as Socket) : undefined
}
