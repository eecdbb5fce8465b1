import type { Cancel, Environment } from '../../environment.ts'
import type { Ask } from './link.ts'

/**
 * Goes round all channels, some at a time, and trims those to which nobody publishes. One hub does this at a time: it holds a
 * lease, and another hub takes over when the first is gone. Reads apply the age bound themselves, so a late round costs memory
 * only.
 */
export function startSweep(ask: Ask, environment: Environment, { maxAgeMs, hasBudget }: SweepOptions): Cancel {
  const roundMs = Math.min(Math.max(maxAgeMs / 10, shortestRoundMs), longestRoundMs)
  let cursor = '0'
  let stopped = false
  let cancel = environment.after(hasBudget ? firstMs : roundMs, next)

  function next(): void {
    ask('sweep', cursor, String(3 * roundMs)).then(
      ([did, reached, isOver]) => {
        cursor = did === 'swept' ? (reached as string) : '0'
        goOn(cursor === '0' && isOver !== '1' ? roundMs : pauseMs)
      },
      // Redis is unavailable, or the log is being closed. The round begins again.
      () => {
        cursor = '0'
        goOn(roundMs)
      },
    )
  }

  function goOn(afterMs: number): void {
    if (!stopped) cancel = environment.after(afterMs, next)
  }

  return () => {
    stopped = true
    cancel()
  }
}

export interface SweepOptions {
  /** The shortest age bound of all channels. */
  readonly maxAgeMs: number
  /** With a budget the first round comes soon, because it counts the channels that are older than the budget. */
  readonly hasBudget: boolean
}

const firstMs = 1000
// A step of 200 channels takes Redis half a millisecond. The pause leaves 95 % of the time to others.
const pauseMs = 10
const shortestRoundMs = 10_000
const longestRoundMs = 600_000
