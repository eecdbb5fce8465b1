import type { CloseReason, RetainedEvent } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import type { Log, Window } from '../../log/contract.ts'
import type { SliceQueue } from '../../slice-queue.ts'
import type { Account } from '../byte-ledger.ts'
import type { Live, MovableReader } from '../live/live.ts'
import type { Subscription } from '../live/subscription.ts'
import type { LogIds } from '../log-ids.ts'
import type { Observers, ReaderFacts, Totals } from '../observation.ts'
import type { Presence } from '../readers/presence.ts'
import type { RetryPolicy } from '../readers/retry.ts'
import type { Ends } from './ends.ts'
import type { FoundOpening, Opening, Start } from './opening.ts'
import type { Segments } from './segments.ts'
import type { Snapshots } from './snapshot.ts'

/** One connected reader: a subscription, a position in the log, and a sink. */
export interface Session extends MovableReader {
  readonly connection: string
  readonly reader: ReaderFacts
  /** A `replaying` session reads segments. A `live` session is pushed to. An `ended` one gets nothing more. */
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
  /** Where the stream starts, when that was found before the reader was connected. */
  readonly opening?: FoundOpening | undefined
}

/** What all sessions of a hub share. */
export interface SessionContext extends LogIds {
  readonly log: Pick<Log, 'history' | 'head'>
  readonly live: Live
  readonly segments: Segments
  readonly slices: SliceQueue
  readonly ends: Ends
  /** Like `log.windows`. Readers that ask at the same time share one call. */
  windows(selectors: readonly string[]): Promise<readonly Window[]>
  /** The newest event of each key, for a reader that lost its position; undefined when these channels retain nothing. */
  retained(selectors: readonly string[]): Promise<readonly RetainedEvent[] | undefined>
  readonly snapshots: Snapshots
  /** Where a stream starts: at once when the hub can tell without asking the log. */
  findOpening(subscription: Subscription, start: Start, isGone: () => boolean): Opening | Promise<Opening>
  /** Whether a reader of these channels and patterns starts at the beginning when it has no cursor. */
  startsAtBeginning(selectors: readonly string[]): boolean
  /** Whether the log is unavailable and the hub serves readers without it. */
  isLocal(): boolean
  /** Counts the bytes that wait for the readers of these sessions. */
  readonly account: Account
  readonly retry: RetryPolicy
  readonly presence: Presence
  readonly environment: Environment
  readonly observers: Observers
  readonly totals: Totals
  readonly heartbeatMs: number
  onEnd(session: Session, reason: string): void
}
