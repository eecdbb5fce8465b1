import { patternsOver } from '@rejoin/protocol'
import type { Subscription } from './subscription.ts'

/** How many readers are here for what. */
export interface Readership {
  add(subscription: Subscription): void
  remove(subscription: Subscription): void
  /** Readers of a channel, those of patterns over it included. */
  of(channel: string): number
}

export function createReadership(): Readership {
  const counts = new Map<string, number>()

  function change(name: string, by: number): void {
    const count = (counts.get(name) ?? 0) + by
    if (count === 0) counts.delete(name)
    else counts.set(name, count)
  }

  return {
    add({ channels }) {
      for (const name of channels) change(name, 1)
    },
    remove({ channels }) {
      for (const name of channels) change(name, -1)
    },
    of(channel) {
      let readers = counts.get(channel) ?? 0
      for (const pattern of patternsOver(channel)) readers += counts.get(pattern) ?? 0
      return readers
    },
  }
}
