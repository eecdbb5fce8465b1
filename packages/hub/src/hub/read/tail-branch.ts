import { type Branch, isSame, survivorOf } from '@rejoin/protocol'
import type { Log } from '../../log/contract.ts'
import type { Live } from '../live/live.ts'

interface Sides {
  readonly log: Pick<Log, 'history'>
  readonly live: Pick<Live, 'head' | 'branch'>
}

export function newestBranch({ history }: Pick<Log, 'history'>): Branch {
  return history.at(-1) as Branch
}

/**
 * Whether the log still has everything that the tail has brought. Until the tail brings a branch that has opened, reads of the
 * log and the live side may be on different branches, and no reader can go from one to the other.
 */
export function isTailCurrent({ log, live }: Sides): boolean {
  if (live.branch.epoch === newestBranch(log).epoch) return true
  const survivor = survivorOf(log.history, live.branch.epoch, live.head)
  return survivor !== undefined && isSame(survivor, live.head)
}
