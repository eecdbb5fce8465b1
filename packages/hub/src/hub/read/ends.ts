import { isAfter, isPattern, latest, type Position } from '@rejoin/protocol'
import type { Log, Window } from '../../log/contract.ts'

/** Which channels have ended. The hub asks the log once for each channel that a reader needs. The tail keeps the answer true. */
export interface Ends {
  /** The newest end of these channels; undefined unless all have ended. Patterns never end: they may get another channel. */
  of(selectors: readonly string[]): Position | undefined
  /** Whether `of` can answer without `learn`. */
  knows(selectors: readonly string[]): boolean
  /**
   * Asks the log about unknown channels. Resolves like `of`. Channels that the log cannot tell of now count as not ended.
   */
  learn(selectors: readonly string[]): Promise<Position | undefined>
  /** Whether all of these channels are known to be deleted. */
  areDeleted(selectors: readonly string[]): boolean
  add(channel: string, end: Position): void
  /** A channel was invalidated. An ended channel is deleted by that, so the log is asked about it again. */
  invalidated(channel: string): void
  /**
   * A channel got an event. No channel that has ended takes one, so the log has forgotten the end of this channel (§5.8), and is
   * asked again. Otherwise the hub would send readers of the new events away for good.
   */
  published(channel: string): void
  /** The tail lost its position, and may have passed over an end. */
  clear(): void
  /** Counts everything that can change an answer. While it stands still, a caller can rely on an answer that was let go here. */
  readonly changes: number
}

// A megabyte. The log is asked again about a channel that was let go.
const maxKnown = 10_000

export function createEnds(log: Pick<Log, 'windows'>): Ends {
  /** The value of a channel that has not ended is undefined. */
  const known = new Map<string, End | undefined>()
  /** Ends that the tail brought while the log was asked. The answer of the log may be older. */
  const brought = new Map<string, End>()
  /** Channels that were invalidated while the log was asked, with the number of the change. The answer may be older. */
  const invalidatedMeanwhile = new Map<string, number>()
  let asking = 0
  let clears = 0
  let changes = 0
  // With a pattern, which never ends, nothing about the channels matters.
  const unknownOf = (selectors: readonly string[]) =>
    selectors.some(isPattern) ? [] : selectors.filter((selector) => !known.has(selector))

  function of(selectors: readonly string[]): Position | undefined {
    let newest: Position | undefined
    for (const selector of selectors) {
      const end = known.get(selector)
      if (!end) return undefined
      newest = latest(newest ?? end.position, end.position)
    }
    return newest
  }

  /** The log is asked about the channel before anybody relies on its end again. */
  function askAgain(channel: string): void {
    changes += 1
    known.delete(channel)
    if (asking === 0) return
    invalidatedMeanwhile.set(channel, changes)
    brought.delete(channel)
  }

  return {
    of,
    knows: (selectors) => selectors.every((selector) => known.has(selector)) || selectors.some(isPattern),
    async learn(selectors) {
      asking += 1
      // An answer from before the tail lost its position may be about a lost branch.
      for (let asOf = -1; asOf !== clears; ) {
        asOf = clears
        const began = changes
        const unknown = unknownOf(selectors)
        const windows = unknown.length > 0 ? await log.windows(unknown).catch(() => []) : []
        if (asOf !== clears) continue
        for (const window of windows) {
          const { channel } = window
          // Ignores only answers to questions from before the invalidation. Otherwise, while others keep asking, no answer
          // would count.
          if ((invalidatedMeanwhile.get(channel) ?? 0) > began) continue
          known.set(channel, known.get(channel) ?? brought.get(channel) ?? endOf(window))
        }
      }
      asking -= 1
      if (asking === 0) {
        brought.clear()
        invalidatedMeanwhile.clear()
      }
      const end = of(selectors)
      for (const channel of known.keys()) {
        if (known.size <= maxKnown) break
        known.delete(channel)
      }
      return end
    },
    areDeleted: (selectors) => selectors.every((selector) => known.get(selector)?.isDeleted === true),
    add(channel, position) {
      changes += 1
      const end = { position, isDeleted: false }
      if (known.has(channel)) known.set(channel, end)
      else if (asking > 0) brought.set(channel, end)
    },
    invalidated(channel) {
      if (asking > 0 || known.get(channel) !== undefined) askAgain(channel)
    },
    published(channel) {
      if (known.get(channel) !== undefined) askAgain(channel)
    },
    get changes() {
      return changes
    },
    clear() {
      changes += 1
      clears += 1
      known.clear()
      brought.clear()
      invalidatedMeanwhile.clear()
    },
  }
}

interface End {
  readonly position: Position
  readonly isDeleted: boolean
}

function endOf({ ended, deleted }: Window): End | undefined {
  return ended && { position: ended, isDeleted: deleted === true }
}

/**
 * Whether a reader that has everything up to `cursor` has everything of its channels (§4.10).
 *
 * @param end - where the last of its channels ended; undefined while one of them goes on
 */
export function hasEverything(cursor: Position, end: Position | undefined): boolean {
  return end !== undefined && !isAfter(end, cursor)
}
