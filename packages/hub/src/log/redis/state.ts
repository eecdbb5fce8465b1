import { type Branch, type History, type IdFormats, isAfter, latest, origin, type Position } from '@rejoin/protocol'
import { Generations } from '../../generations.ts'
import { baseOf, lostAt, mergeHistories, type StoredHistory } from './branches.ts'
import { positionText } from './entry.ts'

/** What one hub knows of the log. All connections of the hub share it. */
export interface KnownState {
  readonly history: History
  /** The formats of the log's ids, as of the last look at the log. */
  readonly formats: IdFormats
  /** The formats as the log stores them; '' before the first look. */
  readonly ids: string
  /** The epoch of the newest branch; '' before the first look. */
  readonly epoch: string
  /** The newest position that this hub has seen on that branch. A log that does not reach it was rolled back. */
  readonly seen: Position | undefined
  /** The first position of this log. Earlier positions are of another log under the same keys. */
  readonly base: Position
  /** The newest positions that this hub has seen, by channel. */
  readonly channels: SeenChannels
  /** Notes a position on a branch. Left out, `epoch` is the newest branch. */
  see(position: Position, epoch?: string): void
  /** The events that this hub has seen and the stored log lacks; undefined when it lacks none. */
  lossIn(stored: History): Loss | undefined
  /** Takes over the stored formats and history, and forgets positions that were lost. */
  adopt(stored: StoredHistory): void
}

export interface Loss {
  /** The branch that lost the events. Absent when the log has no branch after the last one that it shares with this hub. */
  readonly branch?: Branch
  /** The hub and the log agree up to this position. */
  readonly fork: Position
  /** How far this hub had seen. Absent when the log does not know the hub's branch. */
  readonly through?: Position
}

/**
 * @param unseen - the formats before the first look at the log
 * @param formatsOf - reads the stored formats of a log, and rejects those that this hub cannot go on with
 */
export function createKnownState(unseen: IdFormats, formatsOf: (ids: string) => IdFormats): KnownState {
  const channels = createSeenChannels()
  let history: History = []
  let formats = unseen
  let ids = ''
  let seen: Position | undefined
  let epoch = ''
  /** The epoch of the first stored branch. */
  let oldest = ''

  function lossIn(stored: History): Loss | undefined {
    const merged = mergeHistories(history, stored)
    if (!seen) return undefined
    if (merged.some((branch) => branch.epoch === epoch)) {
      const branch = lostAt(merged, epoch, seen)
      // When the first branch of the log is new to this hub, Redis was emptied. Every older cursor then shows its loss by itself.
      if (!branch?.fork || branch.epoch === stored[0]?.epoch) return undefined
      return { branch, fork: branch.fork, through: seen }
    }
    // The log is now on a server that never had this hub's branch. Both went on from the last branch that they share.
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
      // A position of another branch is older, or lost.
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

/**
 * The newest position that this hub has seen in each recent channel. When the log comes back without its newest entries, these
 * positions tell which channels have lost something: only readers of these channels are notified.
 */
export interface SeenChannels {
  /** From this position on, every entry is noted. Earlier entries were not seen, or not one by one. */
  startAt(position: Position): void
  note(channel: string, position: Position): void
  /** The channels with an entry past a fork, and their newest positions. Undefined when other channels may have had one, too. */
  past(fork: Position): ReadonlyMap<string, Position> | undefined
  /** The entries past a fork are lost. The branch that begins at `first` reports them. */
  cutAt(fork: Position, first: Position): void
}

// The hub remembers up to twice as many channels, some 200 bytes each. When a rollback takes back entries of more channels than
// that, the hub reports all channels.
const kept = 8192

export function createSeenChannels(): SeenChannels {
  const seen = new Generations<Position>()
  let since: Position | undefined

  function forgetOlder(): void {
    for (const position of seen.older.values()) since = since && latest(since, position)
    seen.turn()
  }

  return {
    startAt(position) {
      since = since ? latest(since, position) : position
    },
    note(channel, position) {
      const before = seen.newer.get(channel)
      // A hub notes its own appends twice: when they are answered, and when the tail brings them.
      if (before !== undefined && !isAfter(position, before)) return
      if (before === undefined && seen.newer.size >= kept) forgetOlder()
      seen.newer.set(channel, position)
    },
    past(fork) {
      if (!since || isAfter(since, fork)) return undefined
      return new Map([...seen.older, ...seen.newer].filter(([, position]) => isAfter(position, fork)))
    },
    cutAt(fork, first) {
      for (const map of [seen.older, seen.newer]) {
        // Keeps the channel at the position of the report: a later rollback may take the report away, and has to report it again.
        for (const [channel, position] of map) if (isAfter(position, fork)) map.set(channel, first)
      }
      // A hub that had not seen every entry past the fork has reported all channels, so nothing past the fork is missing now.
      if (since && isAfter(since, fork)) since = fork
    },
  }
}
