import { type Branch, type History, isAfter, isSame, origin, type Position } from '@rejoin/protocol'
import { baseOf, lostAt, mergeHistories } from './branches.ts'
import { createSeenChannels, type SeenChannels } from './seen-channels.ts'

/** What one hub knows of the log, over all its connections. */
export interface KnownState {
  readonly history: History
  /** Of the newest branch; '' before the log was looked at. */
  readonly epoch: string
  /** The newest place this hub has met on that branch. A log that has not come to it was rolled back. */
  readonly seen: Position | undefined
  /** Nothing before it is of this log. */
  readonly base: Position
  /** Which channels had something there. */
  readonly channels: SeenChannels
  /** A place on a branch; of the newest one, unless it is named. */
  see(place: Position, epoch?: string): void
  /** What the stored log lacks of what this hub has seen. */
  lossIn(stored: History): Loss | undefined
  /** Takes the stored branches over. Places this hub has seen are forgotten when they were lost. */
  adopt(stored: History): void
}

export interface Loss {
  /** The branch that lost it. Absent where the log goes on as if this hub's branch had never been. */
  readonly branch?: Branch
  /** Up to here the hub and the log agree. */
  readonly fork: Position
  /** How far this hub had seen. Absent when the log does not know the branch it was seen on. */
  readonly through?: Position
}

export function createKnownState(): KnownState {
  const channels = createSeenChannels()
  let history: History = []
  let seen: Position | undefined
  let epoch = ''
  /** Of the first branch that is stored. */
  let oldest = ''

  function lossIn(stored: History): Loss | undefined {
    const merged = mergeHistories(history, stored)
    if (!seen) return undefined
    if (merged.some((branch) => branch.epoch === epoch)) {
      const branch = lostAt(merged, epoch, seen)
      // Where Redis was emptied, everything is lost, and every cursor says so itself.
      if (!branch?.fork || isSame(branch.fork, origin)) return undefined
      return { branch, fork: branch.fork, through: seen }
    }
    // The log was led to a server that never had our branch: both went on from the last branch that they share.
    const shared = history.findLastIndex((branch) => merged.some((other) => other.epoch === branch.epoch))
    const at = merged.findIndex((branch) => branch.epoch === history[shared]?.epoch)
    const branch = merged[at + 1]
    const forks = [history[shared + 1]?.fork, branch?.fork].filter((fork) => fork !== undefined)
    const fork = forks.reduce((a, b) => (isAfter(a, b) ? b : a), forks[0] ?? origin)
    return branch ? { branch, fork } : { fork }
  }

  return {
    channels,
    get history() {
      return history
    },
    get epoch() {
      return epoch
    },
    get seen() {
      return seen
    },
    get base() {
      return baseOf(history, oldest)
    },
    see(place, on = epoch) {
      // One that is not of the newest branch is before it, or lost.
      if (on === epoch && (!seen || isAfter(place, seen))) seen = place
    },
    lossIn,
    adopt(stored) {
      const merged = mergeHistories(history, stored)
      const newest = merged.at(-1)
      if (!newest) return
      const loss = lossIn(stored)
      if (loss) channels.cutAt(loss.fork, newest.first)
      if (seen && epoch !== newest.epoch) seen = newest.first
      history = merged
      epoch = newest.epoch
      oldest = stored[0]?.epoch ?? oldest
    },
  }
}
