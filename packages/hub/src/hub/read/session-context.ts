import type { RetainedEvent } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import type { Log, Window } from '../../log/contract.ts'
import type { SliceQueue } from '../../slice-queue.ts'
import type { Live } from '../live/live.ts'
import type { Subscription } from '../live/subscription.ts'
import type { LogIds } from '../log-ids.ts'
import type { Observers } from '../observation.ts'
import type { Presence } from '../readers/presence.ts'
import type { Queued } from '../readers/queued.ts'
import type { RetryPolicy } from '../readers/retry.ts'
import type { StallWatch } from '../readers/stall.ts'
import type { Totals } from '../totals.ts'
import type { Blocks } from './blocks.ts'
import type { Ends } from './ends.ts'
import type { FoundOpening, Opening, Start } from './opening.ts'
import type { Session } from './session.ts'
import type { SharedReplays } from './shared-replays.ts'
import type { Snapshots } from './snapshot.ts'

/** What all sessions of a hub share. */
export interface SessionContext extends LogIds {
  readonly log: Pick<Log, 'history'>
  readonly live: Live
  readonly blocks: Blocks
  readonly replays: SharedReplays
  readonly slices: SliceQueue
  readonly ends: Ends
  /** Like `log.windows`. Readers that ask at the same time share one call. */
  windows(selectors: readonly string[]): Promise<readonly Window[]>
  /** The newest event of each key, for a reader that lost its position; undefined when these channels retain nothing. */
  retained(selectors: readonly string[]): Promise<readonly RetainedEvent[] | undefined>
  readonly snapshots: Snapshots
  /** Where the stream of a cursor starts, when the hub can tell without asking the log. */
  openingAtHand(cursor: string): FoundOpening | undefined
  findOpening(subscription: Subscription, start: Start, isGone: () => boolean): Promise<Opening>
  /** Whether a reader of these channels and patterns starts at the beginning when it has no cursor. */
  startsAtBeginning(selectors: readonly string[]): boolean
  /** Whether the log is away and the hub serves readers without it. */
  isLocal(): boolean
  readonly stalls: StallWatch
  readonly queued: Queued
  readonly retry: RetryPolicy
  readonly presence: Pick<Presence, 'isStale' | 'renew' | 'expiresAt'>
  readonly environment: Environment
  readonly observers: Observers
  readonly totals: Totals
  readonly heartbeatMs: number
  onEnd(session: Session, reason: string): void
}
