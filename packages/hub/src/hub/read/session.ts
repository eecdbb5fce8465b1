import type { CloseReason } from '@rejoin/protocol'
import type { MovableReader } from '../live/live.ts'
import type { Subscription } from '../live/subscription.ts'
import type { ReaderFacts } from '../observation.ts'
import type { Start } from './opening.ts'

/** One connected reader: a subscription, a position in the log, and a sink. */
export interface Session extends MovableReader {
  readonly connection: string
  readonly reader: ReaderFacts
  /**
   * A `replaying` session reads from the hot window or the log. A `live` session is pushed to. An `ended` one gets nothing more.
   */
  readonly mode: 'replaying' | 'live' | 'ended'
  /** Whether the sink is full: more bytes would only wait. */
  readonly full: boolean
  /** Bytes that wait for the reader. */
  readonly pending: number
  /** When the reader connected, in milliseconds since 1970. */
  readonly since: number
  start(): void
  /** Told by the adapter: the sink was full and has emptied. */
  drained(): void
  /** Told by the adapter: the reader has gone. */
  disconnected(): void
  /** Ends the stream with a reasoned `close`. */
  end(reason: CloseReason, options?: EndOptions): void
}

export interface EndOptions {
  /** How long the reader is told to stay away; left out, the time that the hub tells everybody now. */
  readonly retryMs?: number | undefined
  /** The error that made the hub end the stream, for its observers. */
  readonly cause?: unknown
}

export interface SessionRequest {
  readonly connection: string
  readonly subscription: Subscription
  readonly start: Start
  readonly reader: ReaderFacts
}
