import { patternsOver } from '@rejoin/protocol'
import type { Environment } from '../environment.ts'

/** What readers are told to wait before they come back. */
export interface RetryPolicy {
  /** Of channels that have none of their own. */
  readonly baseMs: number
  /** All bases that there are. Changes when the hub fills up or runs short of something; readers are then told again. */
  readonly basesMs: string
  /**
   * The longest base of these channels with a little chance on top, so that readers cut together do not return together.
   */
  forOne(channels: readonly string[]): number
  /** For an end that the hub chose: longer, and spread wide. */
  forGoodbye(channels: readonly string[]): number
  /** Told how late the hub's own timer was, the plainest sign of an overloaded event loop. */
  observe(loopDelayMs: number): void
}

export interface RetryOptions {
  /**
   * What readers are told to wait before they come back, in milliseconds, or `adaptive`: 2 s, from 10,000 connections 5 s,
   * from 50,000 10 s. Shorter resumes sooner and makes a restart of the hub a larger rush. Either way it is raised while
   * the event loop is late or the heap nearly full, and kept between 0.5 and 60 s.
   * @defaultValue 2000
   */
  retryMs?: number | 'adaptive'
  /**
   * Other times for some channels or patterns: `{ 'prices/*': 500 }`. The narrowest name counts. A reader of several
   * channels is told the longest of theirs.
   * @defaultValue none
   */
  retries?: Readonly<Record<string, number | 'adaptive'>>
}

const minMs = 500
const maxMs = 60_000
// Above these, every reader that stays away for a while is a help.
const lateLoopMs = 100
const fullHeap = 0.85
const jitter = 0.2

export function createRetryPolicy(
  { retryMs = 2000, retries = {} }: RetryOptions,
  environment: Environment,
  connections: () => number,
): RetryPolicy {
  const named = new Map(Object.entries(retries))
  let pressure = 1

  function baseMs(asked: number | 'adaptive'): number {
    const calm = asked === 'adaptive' ? byConnections(connections()) : asked
    return Math.round(Math.min(maxMs, Math.max(minMs, calm) * pressure))
  }

  function ownOf(channel: string): number | 'adaptive' {
    let found = named.get(channel)
    // The narrowest comes last.
    if (found === undefined) for (const pattern of patternsOver(channel)) found = named.get(pattern) ?? found
    return found ?? retryMs
  }

  function longestOf(channels: readonly string[]): number {
    if (named.size === 0) return baseMs(retryMs)
    return Math.max(...channels.map((channel) => baseMs(ownOf(channel))))
  }

  return {
    get baseMs() {
      return baseMs(retryMs)
    },
    get basesMs() {
      return [retryMs, ...named.values()].map(baseMs).join()
    },
    forOne: (channels) => Math.round(longestOf(channels) * (1 + jitter * environment.random())),
    forGoodbye: (channels) => Math.round(Math.min(maxMs, longestOf(channels) * (1 + 4 * environment.random()))),
    observe(loopDelayMs) {
      const strained = loopDelayMs > lateLoopMs || environment.heapUsed() > fullHeap
      pressure = strained ? Math.min(8, pressure * 2) : Math.max(1, pressure / 2)
    },
  }
}

function byConnections(count: number): number {
  if (count < 10_000) return 2000
  return count < 50_000 ? 5000 : 10_000
}
