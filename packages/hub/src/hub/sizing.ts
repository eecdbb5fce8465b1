import type { Position } from '@rejoin/protocol'
import type { Cancel, Environment } from '../environment.ts'
import type { Log, Window } from '../log/contract.ts'
import type { Observers, WindowNeed } from './observation.ts'
import { limitsOf } from './read/channel-window.ts'

/** The window with which readers that are away for this long miss nothing. It covers twice the absence, at this rate. */
export function recommendWindow({ absenceMs, eventsPerSecond }: Absence): WindowNeed {
  return {
    maxAgeMs: Math.ceil(safety * absenceMs),
    maxEvents: Math.ceil((safety * absenceMs * eventsPerSecond) / 1000),
  }
}

export interface Absence {
  /** The longest absence to bridge. The 99th percentile of the absences that you see is a good value. */
  readonly absenceMs: number
  /** Events of one channel at its busiest time. */
  readonly eventsPerSecond: number
}

// An absence at the edge of the window is one slow reconnect away from a gap.
const safety = 2
// Fewer returns tell nothing about a 99th percentile. More returns than `most` are too old to count.
const fewest = 20
const most = 1000
// How often the windows are checked. A warning is for a person, who acts within a day.
const checkEveryMs = 10 * 60_000
// How many of the channels with returns are checked. Each of them is a question to the log.
const sample = 100

/**
 * Watches how long readers are away, and tells the observers of `window` when a window is too small for that. Returns a function
 * that stops the watch.
 */
export function watchWindow({ log, observers, environment }: WatchOptions): () => void {
  let absences: number[] = []
  const channels = new Set<string>()

  function returned(selectors: readonly string[], absenceMs: number | null): void {
    if (absenceMs === null) return
    absences.push(absenceMs)
    if (absences.length > 2 * most) absences = absences.slice(-most)
    for (const selector of selectors) {
      if (channels.size < sample) channels.add(selector)
    }
  }

  async function checkWindow(): Promise<void> {
    cancel = environment.after(checkEveryMs, () => void checkWindow())
    if (absences.length < fewest) return
    const absenceMs = percentile99(absences.slice(-most))
    const selectors = [...channels]
    channels.clear()
    // The log cannot be read now. Its readers are told by their own reads.
    const windows = await log.windows(selectors).catch(() => [])
    for (const window of windows) tellIfSmall(window, absenceMs)
  }

  function tellIfSmall(held: Window, absenceMs: number): void {
    const eventsPerSecond = rateOf(held)
    const need = recommendWindow({ absenceMs, eventsPerSecond })
    const { channel } = held
    const { maxEvents, maxAgeMs } = limitsOf(log, channel)
    if (need.maxEvents <= maxEvents && need.maxAgeMs <= maxAgeMs) return
    observers.tell('window', { channel, absenceMs, eventsPerSecond, has: { maxEvents, maxAgeMs }, needs: need })
  }

  let cancel: Cancel = environment.after(checkEveryMs, () => void checkWindow())
  const stopReplays = observers.on('replay', ({ channels: selectors, absenceMs }) => returned(selectors, absenceMs))
  const stopGaps = observers.on('gap', ({ channels: selectors, absenceMs }) => returned(selectors, absenceMs))
  return () => {
    cancel()
    stopReplays()
    stopGaps()
  }
}

export interface WatchOptions {
  readonly log: Pick<Log, 'window' | 'windowOf' | 'windows'>
  readonly observers: Observers
  readonly environment: Environment
}

function percentile99(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.ceil(sorted.length * 0.99) - 1] as number
}

/** 0 for a counter clock, which tells no time. Then only the age of the window is judged. */
function rateOf({ events, oldest, newest }: Window): number {
  const spanMs = msOf(newest) - msOf(oldest)
  return spanMs > 0 ? (events * 1000) / spanMs : 0
}

function msOf(position: Position | undefined): number {
  return position?.ms ?? 0
}
