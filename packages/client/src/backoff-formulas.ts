import { type Formula, maxTimerMs, type RetryWait, rangeOf, spread } from './backoff.ts'
import { report } from './handler-set.ts'

/** Makes the formula for the option `backoff`. */
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
    // The wait is then the floor: an exception that got through would end all retries.
    report(error)
  }
  return Math.min(Math.max(asked, wait.floorMs), Math.max(wait.maxMs, wait.floorMs), maxTimerMs)
}

/**
 * How clients that lost the same server spread their waits. Most formulas draw from a range that doubles with every
 * failure. `full`: from all of the range. `equal`: from its upper half. `±25%`: from a quarter below to a quarter above
 * the whole range. `+20%`: from the whole range to a fifth above it. `decorrelated`: from three times the last wait.
 * `none`: each client waits for the whole range. A function returns the wait in ms. The server's floor and the limit
 * hold for a function too. When the function throws, the error is reported and the wait is the floor.
 */
export type Backoff = 'full' | 'equal' | '±25%' | '+20%' | 'decorrelated' | 'none' | ((wait: RetryWait) => number)

/** The smallest share of the range, and the share that is drawn on top of it. The other formulas have 0 and 1. */
const shares: Partial<Record<string, readonly [least: number, width: number]>> = {
  equal: [0.5, 0.5],
  '±25%': [0.75, 0.5],
  '+20%': [1, 0.2],
  none: [1, 0],
}
