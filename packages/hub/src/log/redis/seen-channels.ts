import { isAfter, latest, type Position } from '@rejoin/protocol'
import { Generations } from '../../generations.ts'

/**
 * Where this hub saw the newest entry of each channel that had one lately. When the log comes back without its newest entries,
 * this tells which channels lost something: their readers are told, and nobody else.
 */
export interface SeenChannels {
  /** From here on every entry is noted. What came before was not seen, or not one by one. */
  startAt(position: Position): void
  note(channel: string, position: Position): void
  /** The channels with an entry past a fork and where the newest stood; undefined when others may have had one as well. */
  past(fork: Position): ReadonlyMap<string, Position> | undefined
  /** What stood past a fork is lost, and reported by a branch that begins at `first`. */
  cutAt(fork: Position, first: Position): void
}

// Twice as many at most, some 200 bytes each. Of a log that writes to more channels than that in the seconds a rollback takes
// away, all channels are reported.
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
      // A hub hears of its own appends twice.
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
        // A rollback that takes the report away as well, or more, has to report it again.
        for (const [channel, position] of map) if (isAfter(position, fork)) map.set(channel, first)
      }
      // A hub that had not seen everything has reported all channels.
      if (since && isAfter(since, fork)) since = fork
    },
  }
}
