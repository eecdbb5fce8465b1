import { OutgoingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import type { SharedBytes, Sink } from '../hub/live/sink.ts'
import type { Session } from '../hub/read/session.ts'
import { http2StreamOf } from './http2-stream.ts'
import { cut } from './send.ts'

/**
 * Writes a session's bytes to a Node response.
 *
 * All readers of a turn share one buffer that is chunk-framed already, so where nothing stands between the response and
 * its socket the buffer goes to the socket as it is. Through `response.write` each reader would get its own chunk header,
 * body and trailer: three writes and three allocations instead of one and none.
 *
 * A head that was not sent goes out with the first bytes, in one call of the system, because a call of its own is a tenth of what
 * a return costs. When the first bytes take long, because the log has to be asked, the head goes ahead.
 *
 * A class, and not closures over local variables, for its size: ten thousand of these wait at a time.
 */
export class ResponseSink implements Sink {
  readonly #response: ServerResponse
  readonly #budgetBytes: number
  #session: Pick<Session, 'drained'> | undefined
  /** Where bytes go; undefined until the head is sent. */
  #target: Writable | undefined
  #isFramed = false
  #isFull = false

  /** @param isHeadSent - false when the head was given to `writeHead` and is still in the response. */
  constructor(response: ServerResponse, budgetBytes: number, isHeadSent: boolean) {
    this.#response = response
    this.#budgetBytes = budgetBytes
    if (isHeadSent) this.#aim()
  }

  /** From now on, this session is told when the sink has emptied after it was full. */
  serve(session: Pick<Session, 'drained'>): void {
    this.#session = session
    if (this.#target === undefined) setTimeout(sendHead, headWaitsMs, this).unref()
  }

  /** Sends the head without anything behind it, unless it is out. */
  sendHead(): void {
    if (this.#target !== undefined || this.#response.writableEnded || this.#response.destroyed) return
    this.#response.flushHeaders()
    this.#aim()
  }

  write(bytes: SharedBytes): boolean {
    if (this.#target) this.#put(bytes)
    else this.#inOneCall(() => this.#put(bytes))
    return this.#hasRoom()
  }

  writeBoth(first: SharedBytes, second: SharedBytes): boolean {
    this.#inOneCall(() => {
      this.#put(first)
      this.#put(second)
    })
    return this.#hasRoom()
  }

  #put({ chunked, plain }: SharedBytes): void {
    this.#target?.write(this.#isFramed ? chunked : plain)
  }

  /** What is written meanwhile goes out in one call of the system, behind the head unless that is out. */
  #inOneCall(write: () => void): void {
    // A connection of HTTP/2 has other streams, which are not to wait.
    const socket = http2StreamOf(this.#response) ? null : this.#response.socket
    socket?.cork()
    this.sendHead()
    write()
    socket?.uncork()
  }

  #hasRoom(): boolean {
    const target = this.#target ?? this.#response
    // Below its high-water mark a stream emits no 'drain', and a session waiting for one would sleep for ever.
    const limit = Math.max(this.#budgetBytes, target.writableHighWaterMark)
    // Judged by what waits, not by the answer of write(): a healthy TLS socket says false at 16 KB and drains at once.
    if (this.pending <= limit) return true
    this.#listen()
    return false
  }

  #aim(): void {
    const socket = ownSocket(this.#response)
    this.#target = socket ?? this.#response
    this.#isFramed = socket !== undefined && this.#response.chunkedEncoding
  }

  /** Only while the sink is full: most readers never are, and a listener for each of them is memory. */
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

// In a rush of readers the first bytes wait for their turn, and no client gives up a connection so soon.
const headWaitsMs = 1000

function sendHead(sink: ResponseSink): void {
  sink.sendHead()
}

/**
 * The socket, when bytes may be written past the response: the headers are out, nothing waits in the response (a pipelined
 * request waits there for its predecessor), and nobody has wrapped `write`, as compression middleware does.
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
