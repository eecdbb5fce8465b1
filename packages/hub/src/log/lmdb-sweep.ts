import type { Cancel, Environment } from '../environment.ts'
import type { WindowOptions } from './contract.ts'
import type { Change, Commits } from './lmdb-commits.ts'
import { afterChannels, channelKey, channelOf } from './lmdb-keys.ts'
import { openChannelState } from './lmdb-state.ts'
import type { Store } from './lmdb-store.ts'

export interface SweepOptions {
  readonly store: Store
  readonly commits: Commits
  readonly environment: Environment
  readonly window: Required<WindowOptions>
  readonly forgetAfterMs: number
}

/**
 * Goes round the channels, some at a time, for those that nobody publishes to: trims them by age, forgets them in the end,
 * and finds entries that are damaged. An age bound is exceeded on disk by at most one round; reads apply it themselves.
 */
export function startSweep({ store, commits, environment, window, forgetAfterMs }: SweepOptions): Cancel {
  const roundMs = Math.min(Math.max(window.maxAgeMs / 10, shortestRoundMs), longestRoundMs)
  let from = channelKey('')
  let stopped = false
  let cancel = environment.after(roundMs, next)

  function next(): void {
    const now = environment.now()
    const changes: Change[] = []
    let left = channelsAtATime
    for (const { key, value } of store.range(from, afterChannels)) {
      if (left === 0) {
        from = key
        break
      }
      left -= 1
      const state = openChannelState(key, value)
      if (!state) {
        changes.push({ size: 1, apply: (draft) => draft.discard(key) })
      } else if (state.events > 0 ? state.oldestAt < now - window.maxAgeMs : state.emptySince < now - forgetAfterMs) {
        changes.push({ size: 8, apply: (draft) => draft.sweep(channelOf(key), now - forgetAfterMs) })
      }
    }
    const roundEnded = left > 0
    if (roundEnded) from = channelKey('')
    const goOn = () => {
      if (!stopped) cancel = environment.after(roundEnded ? roundMs : pauseMs, next)
    }
    // What could not be swept now, because the disk is full or fails, is met again in the next round.
    Promise.all(changes.map((change) => commits.submit(change))).then(goOn, goOn)
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
