import type { Clock } from '../clock.ts'
import type { OpenRequest } from '../connection.ts'
import type { Report } from '../connection-input.ts'
import type { Handlers } from '../handlers.ts'
import type { RequestOptions } from '../request.ts'

/**
 * One way to reach a hub. Opens one connection and tells the sink what arrives. Resolves when the server has ended the
 * connection, and rejects when the connection failed. Once the signal is aborted, nobody listens any more, and the
 * transport must let go of the connection.
 */
export type Transport = (request: OpenRequest, sink: Sink, signal: AbortSignal) => Promise<void>

/**
 * The arguments that a transport is made with, once per stream. `handlers` tells which types have a handler, for a
 * transport that must name the types it wants.
 */
export type TransportParts = [
  address: URL,
  options: RequestOptions,
  clock: Clock,
  handlers: Pick<Handlers, 'kinds' | 'on'>,
]

export interface Sink {
  /**
   * Reports what is not in a block: the head of the response, signs of life, `retry:`. When the response is not a
   * stream to read, the signal is aborted by the time `tell` returns.
   */
  tell(report: Report): void
  /**
   * Takes a complete block, in the order of the stream. When it returns a promise, the next block must wait for the
   * promise, and reading too: that keeps the memory of a slow reader small.
   */
  receive(block: Block): Promise<void> | undefined
}

/** A block with data is an event. A block without data only moves the cursor. */
export interface Block {
  readonly type?: string
  readonly data?: string
  /** Set when the hub says that the data is text (§4.16). */
  readonly content?: 'text' | undefined
  /** The channel of an event, for a reader that asked for it (§4.15). */
  readonly channel?: string | undefined
  /** The last id of the stream, this block included; empty when this connection has brought no id yet. */
  readonly id: string
}
