import type { Cancel, Environment } from '../../environment.ts'
import type { Windows } from '../window.ts'
import type { Change, Commits } from './commits.ts'
import { hasStaleEntry } from './feed.ts'
import { afterChannels, ageKey, channelKey, channelOf } from './keys.ts'
import { type ChannelState, openChannelState } from './state.ts'
import type { Store } from './store.ts'

export interface SweepOptions {
  readonly store: Store
  readonly commits: Commits
  readonly environment: Environment
  readonly windows: Windows
  readonly forgetAfterMs: number
  /** Set when the log has a budget: channels from before that are counted in. */
  readonly maxBytes?: number | undefined
}

/**
 * Goes round the channels, some at a time, for those that nobody publishes to: trims them by age, forgets them in the end,
 * and finds entries that are damaged, and channels that the budget does not count yet. An age bound is exceeded on disk by at most one round; reads apply it themselves.
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
    // What could not be swept now, because the disk is full or fails, is met again in the next round.
    Promise.all(changes.map((change) => commits.submit(change))).then(goOn, goOn)
  }

  /** The next channels, and what is to be done about them. */
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
      // A page is damaged: whoever reads what stands there is told. The round begins again, before that position.
      changes.length = 0
    }
    from = channelKey('')
    return { changes, roundEnded: true }
  }

  function isFeedDue(madeBefore: number): boolean {
    try {
      return hasStaleEntry(store, madeBefore)
    } catch {
      // A page is damaged here, too. Readers of patterns are told by the read that meets it.
      return false
    }
  }

  function changeFor(key: Buffer, value: Buffer, now: number): Change | undefined {
    const state = openChannelState(key, value)
    if (!state) return { size: 1, apply: (draft) => void draft.discard(key) }
    const { maxAgeMs } = windows.of(channelOf(key))
    const isDue = state.events > 0 ? state.oldestAt < now - maxAgeMs : state.emptySince < now - forgetAfterMs
    if (!isDue && !isUncounted(state)) return undefined
    return { size: 8, apply: (draft) => void draft.sweep(channelOf(key), now - forgetAfterMs) }
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

// A millisecond's work, and a pause in which 99 % of the time is left to others: a million channels take 100 s.
const channelsAtATime = 500
const pauseMs = 50
const shortestRoundMs = 10_000
const longestRoundMs = 3_600_000
