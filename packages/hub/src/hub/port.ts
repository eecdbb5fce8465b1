import type { ReaderRejection, SubscribeRequest } from './hub.ts'
import type { Sink } from './live/sink.ts'
import type { RejectedReader } from './observation.ts'
import type { Incoming } from './publish/incoming.ts'
import type { PullOptions } from './pull/stream.ts'
import type { Unread } from './pull/unread.ts'
import type { StreamFrame } from './read/frame-reader.ts'
import type { Session } from './read/session.ts'

/** The side of a hub that adapters call: they connect readers, bring bodies, and report what became of both. */
export interface HubPort {
  /**
   * Judges a reader before it is connected, in the order that HTTP needs: `rejected` for a reader that can read a status,
   * `deleted` for one whose channels were all deleted, and that can read that, `finished` for a reader that has everything of channels that have all ended, else undefined. Adapters answer `finished`
   * with 204, after which an `EventSource` stays away.
   */
  admit(request: SubscribeRequest, options: AdmitOptions): Promise<Verdict | undefined>
  /**
   * Connects a reader. A reader that has to be rejected is sent away at once, with `close`: room is counted in the same step in
   * which it is taken, so that readers who come together cannot all take the last of it.
   */
  subscribe(request: SubscribeRequest, sink: Sink): ConnectedReader
  /** The same for a reader that pulls its frames, as `hub.stream` gives them to the program. */
  stream(request: SubscribeRequest, options?: PullOptions): AsyncIterable<StreamFrame>
  /** How often rights were revoked or renewed. An adapter notes it before it asks for rights. */
  readonly revocations: number
  /** A reader was rejected before it came to the hub. Goes to the observers of `reject`. */
  rejected(reader: RejectedReader): void
  /** The program's own code failed while a request was answered. Goes to the observers of `error`. */
  failed(cause: unknown): void
  /** Answers to polls that are in memory. An adapter tells it of answers that are on their way. */
  readonly unread: Unread
  /** Bodies of publishes that are in memory. An adapter tells it of bodies that come. */
  readonly incoming: Incoming
}

export interface AdmitOptions {
  /** Whether the reader can read a status, and comes back after one. A native `EventSource` does not. */
  readonly readsStatus: boolean
  /** Whether it polls: then it can read that its channels were deleted. Its other rejections are answers of the poll. */
  readonly polls?: boolean
}

export type Verdict =
  | { readonly kind: 'finished' | 'deleted' }
  | { readonly kind: 'rejected'; readonly rejection: ReaderRejection }

/** A reader that is connected, as far as its adapter needs it. */
export type ConnectedReader = Pick<Session, 'connection' | 'drained' | 'disconnected'>
