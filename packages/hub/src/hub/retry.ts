import type { Environment } from '../environment.ts'

/** What readers are told to wait before they come back. */
export interface RetryPolicy {
  /** Changes when the hub fills up or runs short of something; readers are then told again. */
  readonly baseMs: number
  /** The base with a little chance on top, so that readers cut together do not return together. */
  forOne(): number
  /** For an end that the hub chose: longer, and spread wide. */
  forGoodbye(): number
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
}

const minMs = 500
const maxMs = 60_000
// Above these, every reader that stays away for a while is a help.
const lateLoopMs = 100
const fullHeap = 0.85
const jitter = 0.2

export function createRetryPolicy(
  { retryMs = 2000 }: RetryOptions,
  environment: Environment,
  connections: () => number,
): RetryPolicy {
  let pressure = 1

  function baseMs(): number {
    const calm = retryMs === 'adaptive' ? byConnections(connections()) : retryMs
    return Math.round(Math.min(maxMs, Math.max(minMs, calm) * pressure))
  }

  return {
    get baseMs() {
      return baseMs()
    },
    forOne: () => Math.round(baseMs() * (1 + jitter * environment.random())),
    forGoodbye: () => Math.round(Math.min(maxMs, baseMs() * (1 + 4 * environment.random()))),
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
