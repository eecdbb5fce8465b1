import { isPattern, latest, type Position } from '@rejoin/protocol'
import type { Log } from '../log/contract.ts'

/** Which channels have ended, as far as somebody here needed to know. The tail keeps it true from then on. */
export interface Ends {
  /** The newest end of these channels when all have one. Patterns never end: a channel may be added to them. */
  of(names: readonly string[]): Position | undefined
  /** Whether the log need not be asked about any of them. */
  knows(names: readonly string[]): boolean
  /**
   * Asks the log about those that nobody asked about before, and gives the newest end when all have one. Where the log cannot
   * tell now, they count as not ended.
   */
  learn(names: readonly string[]): Promise<Position | undefined>
  add(channel: string, end: Position): void
  /** The tail lost its place, and may have passed over an end. */
  clear(): void
  /** How often that happened, or a channel ended. Until the next time an answer holds, also one that was let go here. */
  readonly changes: number
}

// A megabyte. One that was let go is asked about again.
const maxKnown = 10_000

export function createEnds(log: Pick<Log, 'windows'>): Ends {
  /** Undefined for a channel that goes on. */
  const known = new Map<string, Position | undefined>()
  /** Ends that the tail brought while the log was asked, maybe before they were there. */
  const brought = new Map<string, Position>()
  let asking = 0
  let clears = 0
  let changes = 0
  // One name that never ends makes the others not matter.
  const unknownOf = (names: readonly string[]) =>
    names.some(isPattern) ? [] : names.filter((name) => !known.has(name))

  function of(names: readonly string[]): Position | undefined {
    let newest: Position | undefined
    for (const name of names) {
      const end = known.get(name)
      if (!end) return undefined
      newest = latest(newest ?? end, end)
    }
    return newest
  }

  return {
    of,
    knows: (names) => unknownOf(names).length === 0,
    async learn(names) {
      asking += 1
      // An answer from before the tail lost its place may be about what never was.
      for (let asOf = -1; asOf !== clears; ) {
        asOf = clears
        const unknown = unknownOf(names)
        const windows = unknown.length > 0 ? await log.windows(unknown).catch(() => []) : []
        if (asOf !== clears) continue
        for (const { channel, ended } of windows)
          known.set(channel, known.get(channel) ?? brought.get(channel) ?? ended)
      }
      asking -= 1
      if (asking === 0) brought.clear()
      const end = of(names)
      for (const channel of known.keys()) {
        if (known.size <= maxKnown) break
        known.delete(channel)
      }
      return end
    },
    add(channel, end) {
      changes += 1
      if (known.has(channel)) known.set(channel, end)
      else if (asking > 0) brought.set(channel, end)
    },
    get changes() {
      return changes
    },
    clear() {
      changes += 1
      clears += 1
      known.clear()
      brought.clear()
    },
  }
}
