import { isAfter, latest, type Position } from '@rejoin/protocol'
import { Generations } from '../../generations.ts'

/**
 * The newest position that this hub has seen in each recent channel. When the log comes back without its newest entries, these
 * positions tell which channels have lost something: only readers of these channels are told.
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

  function letGoOfOlder(): void {
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
      if (before === undefined && seen.newer.size >= kept) letGoOfOlder()
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
