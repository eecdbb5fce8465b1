import type { LogSource } from '@rejoin/hub'
import type { Log, LogEvent, TailBatch } from '@rejoin/hub/log'
import { memoryLog } from '@rejoin/hub/memory'
import { type Branch, origin, type Position } from '@rejoin/protocol'

/**
 * A memory log whose place another server takes, which has nothing of it and whose clock is behind. Whoever asks the log finds
 * the new branch at once; the tail stays with the old server until it is told.
 */
export function failedOverLog() {
  const inner = memoryLog()
  let opened: Log | undefined
  let branch: Branch | undefined
  let onBatch: (batch: TailBatch) => void = () => undefined
  let heldReads: (() => void)[] | undefined
  let held = 0
  let told = 0

  const another: Partial<Log> = {
    read: async (_names, _after, through) => ({ events: [], completeThrough: through }),
    windows: async (names) => names.map((channel) => ({ channel, events: 0, bytes: 0, trimmedThrough: origin })),
    head: async () => place(Math.max(held, told)),
  }

  /** The position of an event of the new server, counted from 1; 0 for the first position of its branch. */
  function place(count: number): Position {
    const { ms, seq } = (branch as Branch).first
    return { ms, seq: seq + count }
  }

  return {
    /** The epoch of the old server's branch. */
    get oldEpoch() {
      return (opened as Log).history.at(-1)?.epoch
    },
    /**
     * The new branch starts a millisecond behind its fork, whatever the old server has assigned since.
     * @param events - how many events the new server has already
     */
    failOver(fork: Position, events = 0) {
      held = events
      const { length } = (opened as Log).history
      branch = { epoch: 'AN0THER1', number: length, first: { ms: fork.ms + 1, seq: 0 }, fork }
    },
    /** The tail comes to the new server, or goes on there, and brings these events. */
    tell(...events: Pick<LogEvent, 'channel' | 'data'>[]) {
      const after = place(told)
      const brought = events.map((event, index) => ({
        ...{ ...event, type: 'message', kind: 'event' as const, at: 0 },
        ...{ position: place(told + index + 1), previous: origin },
      }))
      told += events.length
      onBatch({ after, branch: branch as Branch, events: brought })
    },
    /** Whoever reads waits from now on. A read that was asked of the old server finds one event. */
    holdReads() {
      heldReads = []
    },
    releaseReads() {
      for (const release of heldReads?.splice(0) ?? []) release()
    },
    source: {
      name: inner.name,
      async open(environment) {
        const log = await inner.open(environment)
        opened = log
        const own: Partial<Log> = {
          // A log that can only be read forward.
          readBack: undefined as never,
          async read(names, after, through, limit) {
            const held = heldReads
            if (!held) return log.read(names, after, through, limit)
            await new Promise<void>((resolve) => void held.push(resolve))
            return log.read(names, after, through, { ...limit, events: 1 })
          },
          async retained(names) {
            const held = heldReads
            if (held) await new Promise<void>((resolve) => void held.push(resolve))
            return branch ? [] : log.retained(names)
          },
          tail(after, given) {
            onBatch = given
            return log.tail(after, (batch) => given({ branch: log.history.at(-1) as Branch, ...batch }))
          },
        }
        return new Proxy(log, {
          get: (target, name) => {
            if (name === 'history') return branch ? [...target.history, branch] : target.history
            const source = branch && name in another ? another : name in own ? own : target
            const value: unknown = Reflect.get(source, name)
            return typeof value === 'function' ? value.bind(source) : value
          },
        })
      },
    } satisfies LogSource,
  }
}
