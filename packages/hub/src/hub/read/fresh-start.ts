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

/** Where a reader goes on after a gap, and the state of its channels there. */
export interface FreshStart {
  readonly position: Position
  readonly branch: Branch
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
  const outlived = held.some((window) => isAfter(window.trimmedThrough, taken.position))
  const isOnBranch = taken.branch.epoch === live.branch.epoch
  const useful = isOnBranch && (!outlived || live.hot.covers(channels, taken.position))
  const oldest = oldestOf(context, channels, held)
  // Without the values: they are older than the head, and the events in between would be neither in them nor sent.
  if (!useful) return { position: live.head, branch: live.branch, oldest, state: {} }
  const { position, branch, state } = taken
  return { position, branch, oldest, state: retained ? { ...state, retained } : state }
}

/** Reads a position, the windows of the channels, and their state at that position or later, all on one branch. */
async function readState(context: FreshStartContext, request: FreshStartRequest) {
  const { log, live, windows, snapshots, isLocal } = context
  const { channels, notBefore, isStateWanted, isGone, tailIsCurrent } = request
  for (;;) {
    const { epoch } = newestBranch(log)
    const atHead = { position: live.head, branch: live.branch, state: {} }
    const taken: Snapshot = isStateWanted ? await snapshots.take(channels, notBefore, isGone) : atHead
    // Almost always the hot window covers the position. Then the log is not asked about patterns: it would look at every channel,
    // and a bad cursor must not cost that much.
    const isHere = live.hot.covers(channels, taken.position)
    const asked = isHere && channels.some(isPattern) ? [] : channels
    // The log is away, so it cannot be asked.
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
