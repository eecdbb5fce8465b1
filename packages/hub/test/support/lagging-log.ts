import type { Log, TailBatch } from '@rejoin/hub/log'
import { type MemoryLogOptions, memoryLog } from '@rejoin/hub/memory'

/** A memory log whose tail can be held back, as one over a network would be. */
export function laggingLog(options: MemoryLogOptions = {}) {
  const inner = memoryLog(options)
  let holding = false
  let waiting: { batch: TailBatch; onBatch(batch: TailBatch): void }[] = []
  return {
    hold() {
      holding = true
    },
    release() {
      holding = false
      for (const { batch, onBatch } of waiting) onBatch(batch)
      waiting = []
    },
    /** Only the newest event comes, as from a feed that has let go of all others. */
    releaseNewest() {
      holding = false
      const { batch, onBatch } = waiting.at(-1)!
      const event = batch.events.at(-1)!
      waiting = []
      onBatch({ ...batch, after: batch.events.at(-2)?.position ?? event.previous, events: [event] })
    },
    source: {
      name: inner.name,
      async open(environment: Parameters<typeof inner.open>[0]) {
        const log = await inner.open(environment)
        const held = (after: Parameters<Log['tail']>[0], onEvents: Parameters<Log['tail']>[1]) =>
          log.tail(after, (batch) => {
            if (holding) waiting.push({ batch, onBatch: onEvents })
            else onEvents(batch)
          })
        return new Proxy(log, {
          get: (target, name) => {
            const value: unknown = name === 'tail' ? held : Reflect.get(target, name)
            return typeof value === 'function' ? value.bind(target) : value
          },
        })
      },
    },
  }
}
