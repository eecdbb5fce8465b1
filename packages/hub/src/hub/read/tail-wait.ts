import type { Branch, Position } from '@rejoin/protocol'
import type { Session } from './session.ts'
import type { SessionContext } from './session-context.ts'
import { isTailCurrent, newestBranch } from './tail-branch.ts'

// A session that waits for longer closes its stream. The reader keeps its cursor, and another hub may know more.
export const maxWaitMs = 10_000

/** Waits until the tail of this hub has brought `position` on `branch`, or a later branch. Ends a session that waits too long. */
export async function waitForTail(
  { environment, live }: WaitContext,
  session: WaitingSession,
  position: Position,
  branch: Branch,
): Promise<void> {
  const gaveUp = new AbortController()
  const stopTimer = environment.after(maxWaitMs, () => {
    session.end('log-unavailable')
    gaveUp.abort()
  })
  await live.reached(position, branch, gaveUp.signal)
  stopTimer()
}

/**
 * Waits until the tail has brought the newest branch. A reader that was sent on from the head of an older branch would be told of
 * the same loss once more when the tail arrives.
 */
export async function waitForNewestBranch(context: WaitContext, session: WaitingSession): Promise<void> {
  while (session.mode === 'replaying' && !isTailCurrent(context)) {
    const newest = newestBranch(context.log)
    await waitForTail(context, session, newest.first, newest)
  }
}

type WaitContext = Pick<SessionContext, 'environment' | 'live' | 'log'>

type WaitingSession = Pick<Session, 'mode' | 'end'>
