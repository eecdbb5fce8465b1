import { patternsOver } from '@rejoin/protocol'
import type { Subscription } from '../live/subscription.ts'

/** Counts the readers of each channel and pattern. */
export interface Readership {
  add(subscription: Subscription): void
  remove(subscription: Subscription): void
  /** Readers of a channel, the readers of patterns over it included. */
  of(channel: string): number
}

export function createReadership(): Readership {
  const counts = new Map<string, number>()

  function change(selector: string, by: number): void {
    const count = (counts.get(selector) ?? 0) + by
    if (count === 0) counts.delete(selector)
    else counts.set(selector, count)
  }

  return {
    add({ selectors }) {
      for (const selector of selectors) change(selector, 1)
    },
    remove({ selectors }) {
      for (const selector of selectors) change(selector, -1)
    },
    of(channel) {
      let readers = counts.get(channel) ?? 0
      for (const pattern of patternsOver(channel)) readers += counts.get(pattern) ?? 0
      return readers
    },
  }
}
