import { type Formula, maxTimerMs, type RetryWait, rangeOf, spread } from './backoff.ts'
import { report } from './handler-set.ts'

/** Makes the formula of a user who wants other waits than those of full jitter. */
export function createFormula(backoff: Backoff): Formula {
  if (typeof backoff === 'function') return (wait) => askUser(backoff, wait)
  const [least, width] = shares[backoff] ?? [0, 1]
  return (wait, random) => {
    const isChained = backoff === 'decorrelated' && wait.failures > 0
    const range = isChained ? 3 * (wait.previousMs ?? 0) : rangeOf(wait)
    const most = least + width
    return spread(wait, range * most, (least + width * random()) / most)
  }
}

function askUser(formula: (wait: RetryWait) => number, wait: RetryWait): number {
  let asked = 0
  try {
    asked = formula(wait) || 0
  } catch (error) {
    // It has asked for nothing: without any wait, the stream would never come back.
    report(error)
  }
  return Math.min(Math.max(asked, wait.floorMs), Math.max(wait.maxMs, wait.floorMs), maxTimerMs)
}

/**
 * How the waits of clients that lost the same server are spread. `full`: over all of a range that doubles with every
 * failure. `equal`: over its upper half. `±25%`: over a quarter below and above the whole range. `+20%`: over a fifth above
 * it. `decorrelated`: over three times the last wait. `none`: not at all, each client waits for the whole range. A function
 * gives the wait in ms; the server's floor and the limit still hold, also when it throws, which is reported.
 */
export type Backoff = 'full' | 'equal' | '±25%' | '+20%' | 'decorrelated' | 'none' | ((wait: RetryWait) => number)

/** The least of a range and what is drawn on top of it, as shares. Those of the others are 0 and 1. */
const shares: Partial<Record<string, readonly [least: number, width: number]>> = {
  equal: [0.5, 0.5],
  '±25%': [0.75, 0.5],
  '+20%': [1, 0.2],
  none: [1, 0],
}
