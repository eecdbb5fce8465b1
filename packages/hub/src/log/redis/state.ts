import { type History, isAfter, origin, type Position } from '@rejoin/protocol'
import { baseOf, lostAt, mergeHistories } from './branches.ts'

/** What one hub knows of the log, over all its connections. */
export interface KnownState {
  readonly history: History
  /** Of the newest branch; '' before the log was looked at. */
  readonly epoch: string
  /** The newest place this hub has met. A log that has not come to it was rolled back. */
  readonly seen: Position | undefined
  /** Nothing before it is of this log. */
  readonly base: Position
  see(place: Position): void
  /** Takes the stored branches over. Places this hub has seen are forgotten when they were lost. */
  adopt(stored: History): void
  /** Whether places this hub has seen could be given to other events: it saw further than where the new branch begins. */
  isOverrun(stored: History): boolean
}

export function createKnownState(): KnownState {
  let history: History = []
  let seen: Position | undefined
  let epoch = ''

  return {
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
      return history.length > 0 ? baseOf(history) : origin
    },
    see(place) {
      if (!seen || isAfter(place, seen)) seen = place
    },
    isOverrun(stored) {
      const merged = mergeHistories(history, stored)
      const newest = merged.at(-1)
      return (
        seen !== undefined &&
        newest !== undefined &&
        !isAfter(newest.first, seen) &&
        lostAt(merged, epoch, seen) !== undefined
      )
    },
    adopt(stored) {
      const merged = mergeHistories(history, stored)
      const newest = merged.at(-1)
      if (!newest) return
      if (seen && epoch !== newest.epoch && lostAt(merged, epoch, seen)) seen = newest.first
      history = merged
      epoch = newest.epoch
    },
  }
}
