import type { SliceQueue } from '../../slice-queue.ts'
import type { ChannelRing } from '../channel-ring.ts'
import type { LogBudget, NewEvent } from '../contract.ts'
import { createChannelsByAge } from './by-age.ts'

/** Keeps the bytes of all channels together within the budget. The oldest events of all channels go first. */
export interface MemoryBudget {
  /** Lets go of about as many events as these entries brought, at once, and of the rest in slices. */
  keep(entries: readonly NewEvent[], channels: ReadonlyMap<string, ChannelRing>): void
  /** Takes a channel that the log has forgotten out of the order of age. */
  forget(ring: ChannelRing): void
  state(): LogBudget
}

export interface MemoryBudgetOptions {
  readonly maxBytes: number
  /** The bytes of all channels together. The channels count them. */
  readonly held: { readonly heldBytes: number }
  now(): number
  readonly slices: SliceQueue
  isClosed(): boolean
}

// Events that go in one step when the log is over its budget. That takes less than a millisecond.
const shrunkAtATime = 128

export function createMemoryBudget({ maxBytes, held, now, slices, isClosed }: MemoryBudgetOptions): MemoryBudget {
  const byAge = createChannelsByAge()
  let isShrinking = false

  return {
    keep(entries, channels) {
      for (const { channel, live } of entries) {
        const ring = live ? undefined : channels.get(channel)
        if (ring) byAge.add(ring)
      }
      shrink(Math.min(2 * entries.length, shrunkAtATime))
      if (held.heldBytes > maxBytes && !isShrinking) void shrinkInSlices()
    },
    forget: byAge.remove,
    state: () => ({ usedBytes: held.heldBytes, maxBytes }),
  }

  /** Lets go of at most so many of the oldest events of all channels. */
  function shrink(atMost: number): void {
    const at = now()
    for (let left = atMost; left > 0 && held.heldBytes > maxBytes; left -= 1) {
      const ring = byAge.oldest()
      if (!ring) return
      ring.dropOldest(at)
    }
  }

  async function shrinkInSlices(): Promise<void> {
    isShrinking = true
    while (held.heldBytes > maxBytes && !isClosed()) await slices.take(() => shrink(shrunkAtATime))
    isShrinking = false
  }
}
