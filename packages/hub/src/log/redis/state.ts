import { type Branch, type History, type IdFormats, isAfter, isSame, origin, type Position } from '@rejoin/protocol'
import { baseOf, lostAt, mergeHistories, type Told } from './branches.ts'
import { positionText } from './entry.ts'
import { createSeenChannels, type SeenChannels } from './seen-channels.ts'

/** What one hub knows of the log, over all its connections. */
export interface KnownState {
  readonly history: History
  /** How ids are written, from the time the log was looked at. */
  readonly formats: IdFormats
  /** The same as the log keeps it; '' before it was looked at. */
  readonly ids: string
  /** Of the newest branch; '' before the log was looked at. */
  readonly epoch: string
  /** The newest position this hub has met on that branch. A log that has not come to it was rolled back. */
  readonly seen: Position | undefined
  /** Nothing before it is of this log. */
  readonly base: Position
  /** Which channels had something there. */
  readonly channels: SeenChannels
  /** A position on a branch; of the newest one, unless it is named. */
  see(position: Position, epoch?: string): void
  /** What the stored log lacks of what this hub has seen. */
  lossIn(stored: History): Loss | undefined
  /** Takes over what is stored. Positions this hub has seen are forgotten when they were lost. */
  adopt(told: Told): void
}

export interface Loss {
  /** The branch that lost it. Absent where the log goes on as if this hub's branch had never been. */
  readonly branch?: Branch
  /** Up to here the hub and the log agree. */
  readonly fork: Position
  /** How far this hub had seen. Absent when the log does not know the branch it was seen on. */
  readonly through?: Position
}

/**
 * @param unseen - the formats of a log that was not looked at yet
 * @param formatsOf - reads how a log keeps its formats, and rejects what this hub cannot go on with
 */
export function createKnownState(unseen: IdFormats, formatsOf: (ids: string) => IdFormats): KnownState {
  const channels = createSeenChannels()
  let history: History = []
  let formats = unseen
  let ids = ''
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
    get formats() {
      return formats
    },
    get ids() {
      return ids
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
    see(position, on = epoch) {
      // One that is not of the newest branch is before it, or lost.
      if (on === epoch && (!seen || isAfter(position, seen))) seen = position
    },
    lossIn,
    adopt({ ids: written, history: stored }) {
      if (written !== ids) formats = formatsOf(written)
      ids = written
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

/** How far this hub has seen, as the steps of the script take it. */
export function seenText({ seen }: Pick<KnownState, 'seen'>): string {
  return seen ? positionText(seen) : ''
}
