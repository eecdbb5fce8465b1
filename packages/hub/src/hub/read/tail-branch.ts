import { type Branch, isSame, survivorOf } from '@rejoin/protocol'
import type { Log } from '../../log/contract.ts'
import type { Live } from '../live/live.ts'

interface Sides {
  readonly log: Pick<Log, 'history'>
  readonly live: Pick<Live, 'head' | 'branch'>
}

/** The branch that the log is on now. */
export function newestBranch({ history }: Pick<Log, 'history'>): Branch {
  return history.at(-1) as Branch
}

/**
 * Whether everything that the tail has brought is still part of the log. While a branch has opened that the tail has yet to bring, a
 * read from the log and the live side may be of different branches, and no reader can be led from one to the other.
 */
export function isTailCurrent({ log, live }: Sides): boolean {
  if (live.branch.epoch === newestBranch(log).epoch) return true
  const survivor = survivorOf(log.history, live.branch.epoch, live.head)
  return survivor !== undefined && isSame(survivor, live.head)
}
