import { type Branch, isSame, type Point, survivorOf } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import type { Log } from '../../log/contract.ts'
import type { Live } from '../live/live.ts'

// A session that waits for longer closes its stream. The reader keeps its cursor, and another hub may know more.
export const maxWaitMs = 10_000

export function newestBranch({ history }: Pick<Log, 'history'>): Branch {
  return history.at(-1) as Branch
}

/**
 * Whether the log still has everything that the tail has brought. Until the tail brings a branch that has opened, reads of the
 * log and the live side may be on different branches, and no reader can go from one to the other.
 */
export function isTailCurrent({ log, live }: Sides): boolean {
  if (live.head.branch.epoch === newestBranch(log).epoch) return true
  const survivor = survivorOf(log.history, live.head)
  return survivor !== undefined && isSame(survivor, live.head.position)
}

/** Waits until the tail of this hub has brought `point`, or a later branch. Ends a session that waits too long. */
export async function waitForTail(
  { environment, live }: WaitContext,
  session: WaitingSession,
  point: Point,
): Promise<void> {
  const gaveUp = new AbortController()
  const stopTimer = environment.after(maxWaitMs, () => {
    session.end('log-unavailable')
    gaveUp.abort()
  })
  await live.reached(point, gaveUp.signal)
  stopTimer()
}

/**
 * Waits until the tail has brought the newest branch. Resuming at the head of an older branch could cross the same loss again when
 * the tail arrives, and report it twice.
 */
export async function waitForNewestBranch(context: WaitContext, session: WaitingSession): Promise<void> {
  while (session.mode === 'replaying' && !isTailCurrent(context)) {
    const branch = newestBranch(context.log)
    await waitForTail(context, session, { branch, position: branch.first })
  }
}

interface Sides {
  readonly log: Pick<Log, 'history'>
  readonly live: Pick<Live, 'head' | 'reached'>
}

interface WaitContext extends Sides {
  readonly environment: Environment
}

interface WaitingSession {
  readonly mode: 'replaying' | 'live' | 'ended'
  end(reason: 'log-unavailable'): void
}
