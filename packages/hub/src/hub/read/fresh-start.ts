import {
  type Branch,
  branchAt,
  comparePositions,
  isAfter,
  isPattern,
  type Position,
  type RetainedEvent,
} from '@rejoin/protocol'
import type { Window } from '../../log/contract.ts'
import type { SessionContext } from './session-context.ts'
import type { Snapshot } from './snapshot.ts'
import { newestBranch } from './tail-branch.ts'

/** Where a reader that lost something goes on, and the state of its channels there. */
export interface FreshStart {
  readonly position: Position
  readonly branch: Branch
  /** The id of the oldest event that its channels hold. */
  readonly oldest: string | null
  readonly state: Snapshot['state'] & { readonly retained?: readonly RetainedEvent[] }
}

export interface FreshStartRequest {
  readonly channels: readonly string[]
  /** The reader is not sent back before this position. */
  readonly notBefore: Position
  /** Whether the reader has gone. The answer then says nothing. */
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
  // A snapshot that took longer than the window reaches back is of no use: what follows it is gone as well.
  const outlived = held.some((window) => isAfter(window.trimmedThrough, taken.position))
  const isOnBranch = taken.branch.epoch === live.branch.epoch
  const useful = isOnBranch && (!outlived || live.hot.covers(channels, taken.position))
  const oldest = oldestOf(context, channels, held)
  // Values that were read before the position would hide the events in between, which would be in neither.
  if (!useful) return { position: live.head, branch: live.branch, oldest, state: {} }
  const { position, branch, state } = taken
  return { position, branch, oldest, state: retained ? { ...state, retained } : state }
}

/** A position, what the channels hold, and their state at that position or later; all of one branch. */
async function readState(context: FreshStartContext, request: FreshStartRequest) {
  const { log, live, windows, snapshots, isLocal } = context
  const { channels, notBefore, isGone, tailIsCurrent } = request
  for (;;) {
    const { epoch } = newestBranch(log)
    const taken = await snapshots.take(channels, notBefore)
    // What follows the position is here almost always, and then the log need not be asked: of a pattern it would look at
    // every channel, which is nothing that a bad cursor should cost.
    const isHere = live.hot.covers(channels, taken.position)
    const asked = isHere && channels.some(isPattern) ? [] : channels
    // While events go past a log that is away, it is not asked at all.
    const [held, retained] = isLocal()
      ? [[], undefined]
      : await Promise.all([windows(asked), context.retained(channels)])
    if (isGone() || newestBranch(log).epoch === epoch) return { taken, held, retained }
    // A branch has opened meanwhile. The position may be of the branch before it, and the values of the new one.
    await tailIsCurrent()
  }
}

/** Of patterns nobody is told: the answer would differ by whether the log had to be asked. */
function oldestOf(
  { log, idOf }: FreshStartContext,
  channels: readonly string[],
  held: readonly Window[],
): string | null {
  if (channels.some(isPattern)) return null
  const oldest = held.flatMap((window) => window.oldest ?? []).sort(comparePositions)[0]
  // What a log holds from before its first branch has no id. The reader is told of its gap all the same.
  return oldest && branchAt(log.history, oldest) ? idOf(oldest) : null
}
