import type { Cancel, Environment } from '../../environment.ts'
import type { Ask } from './registry.ts'

/**
 * Goes round the channels, some at a time, for those that nobody publishes to. One hub does it: it holds a lease, and
 * another takes over when it is gone. Reads apply the age bound themselves, so a late round costs memory only.
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
      // Redis is away, or the log is being closed. The round begins again.
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
  /** The shortest that any channel has. */
  readonly maxAgeMs: number
  /** The first round comes soon then: it counts the channels that were there before the log had a budget. */
  readonly hasBudget: boolean
}

const firstMs = 1000
// 200 channels take Redis half a millisecond; the pause leaves it to others for 95 % of the time.
const pauseMs = 10
const shortestRoundMs = 10_000
const longestRoundMs = 600_000
