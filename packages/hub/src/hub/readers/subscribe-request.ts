import type { Subscription } from '../live/subscription.ts'
import type { ReaderFacts } from '../observation.ts'
import type { FoundOpening, Start } from '../read/opening.ts'
import type { Session } from '../read/session.ts'
import type { Client, Rights } from './grant.ts'

/** What a reader asks for, and who it is, as far as an adapter knows. */
export interface SubscribeRequest {
  readonly subscription: Subscription
  readonly start: Start
  /** Who reads, as far as the adapter knows. */
  readonly reader?: ReaderFacts
  /** The reader's rights. The stream is closed when they expire, are revoked, or no longer cover the subscription. */
  readonly rights?: Rights | undefined
  /**
   * Names the client over all its connections, and counts its attempts. A higher attempt of the same subject closes the older
   * connection, which may be dead although the hub has not noticed.
   */
  readonly client?: Client | undefined
  /**
   * How heartbeats are sent. An `EventSource` shows events to its page, but no comments.
   * @defaultValue 'comment'
   */
  readonly heartbeat?: 'comment' | 'event'
}

export interface ReaderRejection {
  readonly reason: string
  readonly retryMs: number
}

/** A reader that may be connected, and what was found out about it. */
export interface Admitted {
  readonly kind: 'admitted'
  readonly request: SubscribeRequest
  /** Whether the reader returns too rapidly; absent when that was not judged yet. */
  readonly rapid?: { readonly verdict: RapidVerdict | undefined }
  /** Where its stream starts, when that had to be found already. A gap is judged again: another hub may report the loss meanwhile. */
  readonly opening?: FoundOpening
}

/** Whether a reader that returns too rapidly is rejected or served late, and for how long, in milliseconds. */
export type RapidVerdict = { readonly rejectMs: number } | { readonly delayMs: number }

/** The part of a session that adapters use. */
export type ConnectedReader = Pick<Session, 'connection' | 'drained' | 'disconnected'>
