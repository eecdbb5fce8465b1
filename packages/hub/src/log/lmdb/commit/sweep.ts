import type { Cancel, Environment } from '../../../environment.ts'
import type { Windows } from '../../window.ts'
import type { Store } from '../files/store.ts'
import { hasStaleEntry } from '../format/feed.ts'
import { afterChannels, ageKey, channelKey, channelOf } from '../format/keys.ts'
import { type ChannelState, openChannelState } from '../format/state.ts'
import type { Change, Commits } from './commits.ts'
import { isForgettable, isOverWindow } from './trim.ts'

export interface SweepOptions {
  readonly store: Store
  readonly commits: Commits
  readonly environment: Environment
  readonly windows: Windows
  readonly forgetAfterMs: number
  /** Set when the log has a budget. The sweep then counts channels that are older than the budget. */
  readonly maxBytes?: number | undefined
}

/**
 * Visits all channels in turn, some at a time, and asks for a commit for each one that is over its window, can be forgotten, has a
 * damaged entry, or is not counted in the budget yet. The commit judges again, because a publish may come first. On the disk, an
 * event outlives its age bound by at most one round; reads apply the bound themselves.
 */
export function startSweep({ store, commits, environment, windows, forgetAfterMs, maxBytes }: SweepOptions): Cancel {
  const roundMs = Math.min(Math.max(windows.shortestAgeMs / 10, shortestRoundMs), longestRoundMs)
  let from = channelKey('')
  let stopped = false
  let cancel = environment.after(pauseMs, next)

  function next(): void {
    const now = environment.now()
    const { changes, roundEnded } = findExpired(now)
    const madeBefore = now - windows.longestAgeMs
    if (isFeedDue(madeBefore)) changes.push({ size: 100, apply: (draft) => void draft.sweepFeed(madeBefore) })
    const goOn = () => {
      if (!stopped) cancel = environment.after(roundEnded ? roundMs : pauseMs, next)
    }
    // When the disk is full or fails, the next round visits the same channels again.
    Promise.all(changes.map((change) => commits.submit(change))).then(goOn, goOn)
  }

  /** Looks at the next channels, and returns the changes that they need. */
  function findExpired(now: number): { changes: Change[]; roundEnded: boolean } {
    const changes: Change[] = []
    let left = channelsAtATime
    try {
      for (const { key, value } of store.range(from, afterChannels)) {
        if (left === 0) {
          from = key
          return { changes, roundEnded: false }
        }
        left -= 1
        const change = changeFor(key, value, now)
        if (change) changes.push(change)
      }
    } catch {
      // A page is damaged. A reader of its channels is told by its own read. The next round begins at the first channel again.
      changes.length = 0
    }
    from = channelKey('')
    return { changes, roundEnded: true }
  }

  function isFeedDue(madeBefore: number): boolean {
    try {
      return hasStaleEntry(store, madeBefore)
    } catch {
      // A page is damaged here, too. A reader of a pattern is told by the read that meets the page.
      return false
    }
  }

  function changeFor(key: Buffer, value: Buffer, now: number): Change | undefined {
    const state = openChannelState(key, value)
    if (!state) return { size: 1, apply: (draft) => void draft.discard(key) }
    const channel = channelOf(key)
    const emptyBefore = now - forgetAfterMs
    // The clock was ahead when the event came, or the channel became empty: the commit sets the time right.
    const isAhead = (state.events > 0 ? state.oldestAt : state.emptySince) > now
    const isDue = isAhead || isOverWindow(state, windows.of(channel), now) || isForgettable(state, emptyBefore)
    if (!isDue && !isUncounted(state)) return undefined
    return { size: 8, apply: (draft) => void draft.sweep(channel, emptyBefore) }
  }

  function isUncounted({ events, agedAt, number }: ChannelState): boolean {
    if (maxBytes === undefined || events === 0) return false
    return !agedAt || store.get(ageKey(agedAt, number)) === undefined
  }

  return () => {
    stopped = true
    cancel()
  }
}

// A step takes a millisecond, and the pause leaves 99 % of the time to others. A round of a million channels takes 100 s.
const channelsAtATime = 500
const pauseMs = 50
const shortestRoundMs = 10_000
const longestRoundMs = 3_600_000
