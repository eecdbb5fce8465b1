import {
  type Branch,
  encodeSyncRequired,
  type GapReason,
  isAfter,
  latest,
  origin,
  type Position,
} from '@rejoin/protocol'
import { findFreshStart } from './fresh-start.ts'
import type { ReplayReport } from './replay-report.ts'
import type { Session } from './session.ts'
import type { SessionContext } from './session-context.ts'
import type { SessionCursor } from './session-cursor.ts'
import { tellGap } from './session-news.ts'
import { newestBranch } from './tail-branch.ts'
import { waitForNewestBranch, waitForTail } from './tail-wait.ts'

/**
 * Tells a reader of a gap by `sync-required`, the only frame that moves a cursor over a gap (§4.6). The cursor never moves back.
 */
export async function announceGap(
  context: SessionContext,
  session: GapSession,
  { reason, channels, wholeAfter = origin, isMark = false }: FoundGap,
): Promise<void> {
  const { log, branchOf } = context
  const { requested, readsPast } = session
  // A reader that got further before the rollback may have events that are newer than those behind the mark.
  const canGoOnAtMark = isMark && !session.cursor.isTorn
  const { epoch } = newestBranch(log)
  const isGone = () => session.mode !== 'replaying'
  await waitForEnd(context, session, wholeAfter)
  await waitForNewestBranch(context, session)
  if (isGone()) return
  const failed = session.failResume()
  const absenceMs = reason === 'expired' ? ageOf(session.cursor.position, context.environment.now()) : null
  tellGap(context.observers, session, channels, {
    reason,
    requested,
    absenceMs,
    resuming: failed !== undefined,
    replayed: failed?.replayed ?? 0,
  })
  const { oldest, state, ...fresh } = await findFreshStart(context, {
    channels: session.subscription.selectors,
    notBefore: latest(session.cursor.position, wholeAfter),
    // A reader of the past gets every event behind the mark, and has no use for a state that is newer than they are.
    isStateWanted: !(canGoOnAtMark && readsPast),
    isGone,
    tailIsCurrent: () => waitForNewestBranch(context, session),
  })
  if (isGone()) return
  // Without a state, the reader goes on right behind the mark: what stands there is held. When a branch has opened meanwhile,
  // the mark itself may be lost.
  const goesOnAtMark = canGoOnAtMark && Object.keys(state).length === 0 && newestBranch(log).epoch === epoch
  const { position, branch } = goesOnAtMark ? { position: wholeAfter, branch: branchOf(wholeAfter) } : fresh
  const id = context.idOn(position, branch)
  const { snapshot, ...rest } = state
  const sync = { reason, channels, requested, oldest, latest: id, ...rest }
  session.crossGap(position, branch, encodeSyncRequired(sync, { id, snapshot }))
}

/** A gap that a session has found behind the cursor of its reader. */
export interface FoundGap {
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
  crossGap(position: Position, branch: Branch, frame: string): void
}

/**
 * Waits until the tail has brought everything up to the end of the gap. The log may have trimmed events that the tail has yet to
 * bring. A reader that was sent on from the head of now would meet the same gap again, and be told of it twice.
 */
async function waitForEnd(context: SessionContext, session: GapSession, wholeAfter: Position): Promise<void> {
  const { live, branchOf } = context
  if (isAfter(wholeAfter, live.head)) await waitForTail(context, session, wholeAfter, branchOf(wholeAfter))
}

/** Null on a counter clock, which tells no time. */
function ageOf({ ms }: Position, now: number): number | null {
  return ms > 0 ? Math.max(0, now - ms) : null
}
