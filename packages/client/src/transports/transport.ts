import type { Clock } from '../clock.ts'
import type { OpenRequest, Report } from '../connection.ts'
import type { Handlers } from '../handlers.ts'
import type { RequestOptions } from '../request.ts'

/**
 * One way to reach a hub. Opens one connection and tells the sink what arrives on it. Resolves when the server has ended
 * it, and rejects when it failed. Once the signal is aborted nobody listens any more, and it must let go of the
 * connection.
 */
export type Transport = (request: OpenRequest, sink: Sink, signal: AbortSignal) => Promise<void>

/**
 * What a transport is made of, once for a stream. `handlers` tells which types somebody handles, for a transport that is
 * given only those it names.
 */
export type TransportParts = [
  address: URL,
  options: RequestOptions,
  clock: Clock,
  handlers: Pick<Handlers, 'kinds' | 'on'>,
]

export interface Sink {
  /**
   * What is not in a block: the head of the response, signs of life, `retry:`. When the response is not a stream to read,
   * the signal is aborted on return.
   */
  tell(report: Report): void
  /**
   * A block that is complete, in the order of the stream. When a promise comes back, the next block must wait for it, and
   * reading too: that is what keeps a slow reader's memory small.
   */
  receive(block: Block): Promise<void> | undefined
}

/** A block with data is an event of its type; one without only moves the cursor. */
export interface Block {
  readonly type?: string
  readonly data?: string
  /** Where the hub says that the data is text (§4.16). */
  readonly content?: 'text' | undefined
  /** Where an event was published, for a reader that asked to be shown it (§4.15). */
  readonly channel?: string | undefined
  /** The last id of the stream once this block is counted; empty while there was none on this connection. */
  readonly id: string
}
