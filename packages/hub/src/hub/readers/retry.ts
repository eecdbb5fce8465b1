import { narrowestOf } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'

/** How long readers are told to wait before they return. */
export interface RetryPolicy {
  /** The time for channels that have no time of their own, without the random part. */
  readonly baseMs: number
  /** Changes when readers have to be told a new time: the hub has more readers, or lacks memory or processor time. */
  readonly version: string
  /**
   * The longest time of these channels, and a random part on top. The range of the random part grows with the number of readers,
   * so that readers that are cut together return at `returnsPerSecond` at most.
   */
  forOne(channels: readonly string[]): number
  /** The shortest time that a reader of these channels is told: without the random part. */
  leastOf(channels: readonly string[]): number
  /**
   * For a stream that the hub closes on purpose: longer, and spread wide. Longest while the log is unavailable, 15 to 30 s with the
   * default time: each return asks the log, and a log that has just come back has enough to do.
   */
  forClose(channels: readonly string[], reason?: string): number
  /** Takes note of how late a timer of the hub was, the plainest sign of an overloaded event loop. */
  observe(loopDelayMs: number): void
}

export interface RetryOptions {
  /**
   * How long readers are told to wait before they return, in milliseconds. `adaptive` is 2 s, from 10,000 connections 5 s, from
   * 50,000 10 s. With a shorter time, readers resume sooner, and a restart of the hub makes a larger rush. Each reader is told a
   * random time on top: up to a fifth more, and with many readers up to half a millisecond more for each of them. So about 2,000
   * readers a second return at worst. The time is raised while the event loop is late or the heap is nearly full. Without the
   * random part it is always between 0.5 and 60 s.
   * @defaultValue 2000
   */
  retryMs?: number | 'adaptive' | undefined
  /**
   * Other times for some channels or patterns: `{ 'prices/*': 500 }`. The narrowest name counts. A reader of several channels is
   * told the longest of their times.
   * @defaultValue none
   */
  retries?: Readonly<Record<string, number | 'adaptive'>> | undefined
}

const minMs = 500
const maxMs = 60_000
// Above these, readers are told to stay away for longer.
const lateLoopMs = 100
const fullHeap = 0.85
const jitter = 0.2
// Times the base, for a stream that the hub closes.
const intended = { least: 1, most: 5 }
const outage = { least: 7.5, most: 15 }
// A hub serves this many returns without slowing its other readers. `npm run bench -- replay` shows the cost of one return.
const returnsPerSecond = 2000
// Readers are told again when the range has grown by this factor. A smaller factor would write to all readers for little.
const noticeableGrowth = 1.25

export function createRetryPolicy(
  { retryMs = 2000, retries = {} }: RetryOptions,
  environment: Environment,
  connections: () => number,
): RetryPolicy {
  const named = new Map(Object.entries(retries))
  let pressure = 1
  let toldRangeMs = 0

  /** The time over which readers that are cut together should return. */
  function rangeMs(): number {
    return (connections() / returnsPerSecond) * 1000
  }

  function baseMs(asked: number | 'adaptive'): number {
    const calm = asked === 'adaptive' ? byConnections(connections()) : asked
    return Math.round(Math.min(maxMs, Math.max(minMs, calm) * pressure))
  }

  function longestOf(channels: readonly string[]): number {
    if (named.size === 0) return baseMs(retryMs)
    return Math.max(...channels.map((channel) => baseMs(narrowestOf(named, channel) ?? retryMs)))
  }

  return {
    get baseMs() {
      return baseMs(retryMs)
    },
    get version() {
      return [Math.round(toldRangeMs), ...[retryMs, ...named.values()].map(baseMs)].join()
    },
    leastOf: longestOf,
    forOne(channels) {
      const longest = longestOf(channels)
      const least = jitter * longest
      // The range is cut to the limit before the draw. If the result were cut, all readers beyond the limit would return at once.
      const range = Math.min(Math.max(least, rangeMs()), Math.max(least, maxMs - longest))
      return Math.round(longest + range * environment.random())
    },
    forClose(channels, reason) {
      const { least, most } = reason === 'log-unavailable' ? outage : intended
      return Math.round(Math.min(maxMs, longestOf(channels) * (least + (most - least) * environment.random())))
    },
    observe(loopDelayMs) {
      const strained = loopDelayMs > lateLoopMs || environment.heapUsed() > fullHeap
      pressure = strained ? Math.min(8, pressure * 2) : Math.max(1, pressure / 2)
      const range = rangeMs() > jitter * baseMs(retryMs) ? rangeMs() : 0
      // A smaller range is told only from half on. Otherwise a wavering number of readers would be told again and again.
      if (range > toldRangeMs * noticeableGrowth || range < toldRangeMs / 2) toldRangeMs = range
    },
  }
}

function byConnections(count: number): number {
  if (count < 10_000) return 2000
  return count < 50_000 ? 5000 : 10_000
}
