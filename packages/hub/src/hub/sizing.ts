import type { Position } from '@rejoin/protocol'
import type { Cancel, Environment } from '../environment.ts'
import type { Log, Window } from '../log/contract.ts'
import type { Observers } from './observation.ts'
import { limitsOf } from './read/channel-window.ts'

/** What a window needs so that readers who are away for so long miss nothing: twice that absence, at this rate. */
export function recommendWindow({ absenceMs, eventsPerSecond }: Absence): WindowNeed {
  return {
    maxAgeMs: Math.ceil(safety * absenceMs),
    maxEvents: Math.ceil((safety * absenceMs * eventsPerSecond) / 1000),
  }
}

export interface Absence {
  /** The longest absence that has to be bridged; the 99th percentile of those you see is a good one. */
  readonly absenceMs: number
  /** Events of one channel, at its busiest. */
  readonly eventsPerSecond: number
}

export interface WindowNeed {
  readonly maxAgeMs: number
  readonly maxEvents: number
}

// An absence at the edge of the window is one slow reconnect away from a gap.
const safety = 2
// Fewer returns say nothing about the hundredth; more than these are of another day.
const fewest = 20
const most = 1000
// How often the window is looked at. A warning is for a person, who acts within a day.
const checkEveryMs = 10 * 60_000
// Of the channels that were returned to, those looked at; each is a question to the log.
const sample = 100

/**
 * Watches how long readers are away, and tells the observers of `window` when what the log keeps is too small for that.
 * Returns a function that stops it.
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
    // A log that cannot be read now has told those who tried to read it.
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

/** A channel whose window is too small for those who return to it. */
export interface SmallWindow {
  readonly channel: string
  /** The 99th percentile of the absences seen, over all channels. */
  readonly absenceMs: number
  /** Of this channel, over what it holds. */
  readonly eventsPerSecond: number
  readonly has: WindowNeed
  readonly needs: WindowNeed
}

function percentile99(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.ceil(sorted.length * 0.99) - 1] as number
}

/** A counter clock has no times to take a rate from; then only the age of the window is judged. */
function rateOf({ events, oldest, newest }: Window): number {
  const spanMs = msOf(newest) - msOf(oldest)
  return spanMs > 0 ? (events * 1000) / spanMs : 0
}

function msOf(position: Position | undefined): number {
  return position?.ms ?? 0
}
