import type { ByteLedger } from './byte-ledger.ts'
import type { Sink } from './live/sink.ts'
import type { RejectedReader } from './observation.ts'
import type { PollAnswer, PollOptions } from './pull/poll.ts'
import type { PullOptions } from './pull/stream.ts'
import type { StreamFrame } from './read/frame-reader.ts'
import type { Admitted, ConnectedReader, ReaderRejection, SubscribeRequest } from './readers/subscribe-request.ts'

/** The side of a hub that adapters call: they connect readers, bring bodies of publishes, and report what becomes of both. */
export interface HubPort {
  /** Judges a reader before it is connected. What is admitted is given to `subscribe`, so that nothing is judged twice. */
  admit(request: SubscribeRequest, options: AdmitOptions): Promise<Verdict>
  /**
   * Connects a reader. A reader over a limit is sent `close` at once. The number of readers is judged in the same step in which the
   * reader is counted, so that readers that come together cannot all take the last place.
   */
  subscribe(admitted: Admitted, sink: Sink): ConnectedReader
  /** Like `subscribe`, for a reader that pulls its frames, like the readers of `hub.stream`. */
  stream(request: SubscribeRequest, options?: PullOptions): AsyncIterable<StreamFrame>
  /**
   * Serves a reader that cannot hold a stream open. The answer has the events that the reader missed. When there are none, it
   * waits for the next event, and is empty after `waitMs`. A reader that always polls with its last cursor misses nothing.
   */
  poll(request: SubscribeRequest, options?: PollOptions): Promise<PollAnswer | ReaderRejection>
  /** The channel of requests that name none; undefined when such requests are rejected. */
  readonly defaultChannel: string | undefined
  /** Counts revocations and renewals of rights. An adapter notes it before it asks for rights. */
  readonly revocations: number
  /** How long a reader of these channels is told to stay away when the adapter rejects it, in milliseconds, with a random part. */
  retryMsFor(selectors: readonly string[]): number
  /** A reader was rejected before it came to the hub. Tells the observers of `reject`. */
  rejected(reader: RejectedReader): void
  /** The program's own code failed while a request was answered. Tells the observers of `error`. */
  failed(cause: unknown): void
  /** Bytes in memory. An adapter opens entries for the answers that it sends, and for the bodies that it receives. */
  readonly memory: Pick<ByteLedger, 'streams' | 'answers' | 'bodies'>
}

export interface AdmitOptions {
  /** Whether the reader can read a status, and returns after one. A native `EventSource` cannot. */
  readonly readsStatus: boolean
  /** Whether the reader polls. Then it can be told `deleted`; its other rejections are answers of the poll. */
  readonly polls?: boolean | undefined
}

/**
 * What becomes of a reader, in the order in which it is judged:
 *
 * - `rejected`: a limit is reached or the log is unavailable, and the reader can read a status.
 * - `deleted`: all channels were deleted, and the reader can read a status or polls.
 * - `finished`: the reader has everything, and all channels have ended. Adapters answer with 204, so an `EventSource` stays away.
 * - `admitted`: the reader can be connected.
 */
export type Verdict =
  | { readonly kind: 'rejected'; readonly rejection: ReaderRejection }
  | { readonly kind: 'deleted' | 'finished' }
  | Admitted
