import type { Log, TailBatch } from '@rejoin/hub/log'
import { memoryLog } from '@rejoin/hub/memory'
import { type History, origin, type Position } from '@rejoin/protocol'

/** A memory log that seems to lose everything it has, as one on another computer may. The tail learns of it later. */
export function emptiedLog() {
  const inner = memoryLog()
  let history: History | undefined
  let onBatch: (batch: TailBatch) => void = () => undefined
  let first: Position = origin
  let opened: Log | undefined
  return {
    /** Whoever asks the log finds the new branch from now on. */
    async empty() {
      const log = opened as Log
      const { ms } = await log.head()
      first = { ms: Math.max(ms, first.ms) + 1, seq: 0 }
      const before = history ?? log.history
      history = [...before, { epoch: `EMPT1ED${before.length}`, number: before.length, first, fork: origin }]
      const place = first
      return {
        /** The tail has heard of it as well. */
        tell: () => onBatch({ after: place, events: [] }),
      }
    },
    source: {
      name: inner.name,
      async open(environment: Parameters<typeof inner.open>[0]) {
        const log = await inner.open(environment)
        opened = log
        const watched: Log['tail'] = (after, given) => {
          onBatch = given
          return log.tail(after, given)
        }
        return new Proxy(log, {
          get: (target, name) => {
            if (name === 'tail') return watched
            if (name === 'history') return history ?? target.history
            if (name === 'head' && history) return async () => first
            const value: unknown = Reflect.get(target, name)
            return typeof value === 'function' ? value.bind(target) : value
          },
        })
      },
    },
  }
}
