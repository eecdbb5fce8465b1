import type { Log } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'

/** A memory log whose tail can be held back, as one over a network would be. */
export function laggingLog() {
  const inner = memoryLog()
  let holding = false
  let waiting: (() => void)[] = []
  return {
    hold() {
      holding = true
    },
    release() {
      holding = false
      for (const deliver of waiting) deliver()
      waiting = []
    },
    source: {
      name: inner.name,
      async open(environment: Parameters<typeof inner.open>[0]) {
        const log = await inner.open(environment)
        const held = (after: Parameters<Log['tail']>[0], onEvents: Parameters<Log['tail']>[1]) =>
          log.tail(after, (batch) => {
            if (holding) waiting.push(() => onEvents(batch))
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
