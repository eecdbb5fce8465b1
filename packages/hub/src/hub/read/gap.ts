import {
  branchAt,
  comparePositions,
  encodeSyncRequired,
  type GapReason,
  isAfter,
  isPattern,
  latest,
  origin,
  type Point,
  type Position,
  type RetainedEvent,
} from '@rejoin/protocol'
import type { Window } from '../../log/contract.ts'
import type { Session, SessionContext } from './session.ts'
import type { SessionCursor } from './session-cursor.ts'
import { type ReplayReport, reportGap } from './session-report.ts'
import type { Snapshot } from './snapshot.ts'
import { newestBranch, waitForNewestBranch, waitForTail } from './tail-wait.ts'

/**
 * Tells a reader of a gap by `sync-required`, the only frame that moves a cursor over a gap (§4.6). The cursor never moves back.
 */
export async function announceGap(
  context: SessionContext,
  session: GapSession,
  { reason, channels, wholeAfter = origin, isMark = false }: AnnouncedGap,
): Promise<void> {
  const { log, pointAt } = context
  const { requested, readsPast } = session
  // A reader that got further before the rollback may have events that are newer than those behind the mark.
  const canGoOnAtMark = isMark && !session.cursor.isTorn
  const isAheadOfFork = session.cursor.isTorn || (reason === 'epoch' && !isMark)
  const { epoch } = newestBranch(log)
  const isGone = () => session.mode !== 'replaying'
  await waitForEnd(context, session, wholeAfter)
  await waitForNewestBranch(context, session)
  if (isAheadOfFork && !context.isLocal()) await waitForLogHead(context, session)
  if (isGone()) return
  const { position } = session.cursor.at
  const failed = session.failResume()
  reportGap(context.observers, session, channels, {
    reason,
    requested,
    absenceMs: reason === 'expired' ? ageOf(position, context.environment.now()) : null,
    resuming: failed !== undefined,
    replayed: failed?.replayed ?? 0,
  })
  const { oldest, state, at } = await findFreshStart(context, {
    channels: session.subscription.selectors,
    notBefore: latest(position, wholeAfter),
    // A reader of the past gets every event behind the mark, and has no use for a state that is newer than they are.
    isStateWanted: !(canGoOnAtMark && readsPast),
    isGone,
    tailIsCurrent: () => waitForNewestBranch(context, session),
  })
  if (isGone()) return
  // Without a state, the reader goes on right behind the mark: what stands there is held. When a branch has opened meanwhile,
  // the mark itself may be lost.
  const goesOnAtMark = canGoOnAtMark && Object.keys(state).length === 0 && newestBranch(log).epoch === epoch
  const goesOnAt = goesOnAtMark ? pointAt(wholeAfter) : at
  const id = context.idAt(goesOnAt)
  const { snapshot, ...rest } = state
  const sync = { reason, channels, requested, oldest, latest: id, ...rest }
  session.crossGap(goesOnAt, encodeSyncRequired(sync, { id, snapshot }))
}

/** A gap that a session has found behind the cursor of its reader. */
export interface AnnouncedGap {
  readonly reason: GapReason
  /** The channels that lost something. */
  readonly channels: readonly string[]
  /** The log has everything behind this position; left out when no read has told the position. */
  readonly wholeAfter?: Position
  /** As in `Gap`: everything that the log holds before `wholeAfter` has been sent. */
  readonly isMark?: boolean
}

export interface GapSession extends Session {
  readonly cursor: SessionCursor
  /** The id, or the word `earliest`, that the reader wanted to go on from. */
  readonly requested: string
  /** Whether the reader asked for the past and has yet to come to its end. */
  readonly readsPast: boolean
  /**
   * The reader cannot resume: greets a reader that has no `hello` yet. Returns what a reader that was about to resume had been
   * sent so far.
   */
  failResume(): Pick<ReplayReport, 'replayed'> | undefined
  /** Moves the cursor behind the gap, and writes the frame that announces the gap. */
  crossGap(to: Point, frame: string): void
}

/**
 * Waits until the tail has brought everything up to the end of the gap. The log may have trimmed events that the tail has yet to
 * bring. Resuming at the current head could cross the same gap again and report it twice.
 */
async function waitForEnd(context: SessionContext, session: GapSession, wholeAfter: Position): Promise<void> {
  const { live, pointAt } = context
  if (isAfter(wholeAfter, live.head.position)) await waitForTail(context, session, pointAt(wholeAfter))
}

/**
 * Waits until the tail has brought everything that the log holds now. The head of a hub that follows a new master late lies behind
 * events that its readers got from the old one: from there, they would get older events after newer ones.
 */
async function waitForLogHead(context: SessionContext, session: GapSession): Promise<void> {
  const { log, live, pointAt } = context
  const head = pointAt(await log.head())
  if (!live.hasReached(head)) await waitForTail(context, session, head)
}

/** Null on a counter clock, which tells no time. */
function ageOf({ ms }: Position, now: number): number | null {
  return ms > 0 ? Math.max(0, now - ms) : null
}

/** Where a reader goes on after a gap, and the state of its channels there. */
export interface FreshStart {
  readonly at: Point
  /** The id of the oldest event that the channels hold. */
  readonly oldest: string | null
  readonly state: Snapshot['state'] & { readonly retained?: readonly RetainedEvent[] }
}

export interface FreshStartRequest {
  readonly channels: readonly string[]
  /** The reader is not sent back before this position. */
  readonly notBefore: Position
  /** False for a reader that gets every event anyway. Then the state is empty. */
  readonly isStateWanted: boolean
  /** Whether the reader has gone. Then the result means nothing. */
  isGone(): boolean
  /** Resolves when the tail has brought the newest branch. */
  tailIsCurrent(): Promise<void>
}

type FreshStartContext = Pick<
  SessionContext,
  'log' | 'live' | 'windows' | 'snapshots' | 'retained' | 'isLocal' | 'idOf'
>

export async function findFreshStart(context: FreshStartContext, request: FreshStartRequest): Promise<FreshStart> {
  const { live } = context
  const { channels } = request
  const { taken, held, retained } = await readState(context, request)
  // The snapshot took longer than the window reaches back: the events behind it are gone, so it is of no use.
  const outlived = held.some((window) => isAfter(window.trimmedThrough, taken.at.position))
  const isOnBranch = taken.at.branch.epoch === live.head.branch.epoch
  const useful = isOnBranch && (!outlived || live.hot.covers(channels, taken.at.position))
  const oldest = oldestOf(context, channels, held)
  // Without the values: they are older than the head, and the events in between would be neither in them nor sent.
  if (!useful) return { at: live.head, oldest, state: {} }
  const { at, state } = taken
  return { at, oldest, state: retained ? { ...state, retained } : state }
}

/** Reads a position, the windows of the channels, and their state at that position or later, all on one branch. */
async function readState(context: FreshStartContext, request: FreshStartRequest) {
  const { log, live, windows, snapshots, isLocal } = context
  const { channels, notBefore, isStateWanted, isGone, tailIsCurrent } = request
  for (;;) {
    const { epoch } = newestBranch(log)
    const atHead = { at: live.head, state: {} }
    const taken: Snapshot = isStateWanted ? await snapshots.take(channels, notBefore, isGone) : atHead
    // Almost always the hot window covers the position. Then the log is not asked about patterns: it would look at every channel,
    // and a bad cursor must not cost that much.
    const isHere = live.hot.covers(channels, taken.at.position)
    const asked = isHere && channels.some(isPattern) ? [] : channels
    // The log is unavailable, so it cannot be asked.
    const [held, retained] = isLocal()
      ? [[], undefined]
      : await Promise.all([windows(asked), isStateWanted ? context.retained(channels) : undefined])
    if (isGone() || newestBranch(log).epoch === epoch) return { taken, held, retained }
    // A branch has opened meanwhile. The position may be of the old branch, and the values of the new one.
    await tailIsCurrent()
  }
}

/** Null for patterns: the answer would depend on whether the log had to be asked. */
function oldestOf(
  { log, idOf }: FreshStartContext,
  channels: readonly string[],
  held: readonly Window[],
): string | null {
  if (channels.some(isPattern)) return null
  const oldest = held.flatMap((window) => window.oldest ?? []).sort(comparePositions)[0]
  // An event from before the first branch has no id. The gap is announced all the same.
  return oldest && branchAt(log.history, oldest) ? idOf(oldest) : null
}
