import { type Hello, isReservedType, type SyncRequired } from '@rejoin/protocol'
import { type Connection, type Input, isOpen, type Report } from './connection.ts'
import type { Handlers } from './handlers.ts'
import { createRecentIds } from './recent-ids.ts'
import type { Block } from './transport.ts'

/**
 * Makes the receivers of a stream, one for each connection. A receiver brings blocks to the handlers, in order and once,
 * and only then lets the machine move the cursor: in the other order, a page that is left in between loses an event.
 */
export function createReceivers({ current, dispatch, handlers }: ReceiverOptions): (generation: number) => Receiver {
  const recentIds = createRecentIds()
  // An `onSync` handler that is still at work. Nothing is delivered meanwhile, on whichever connection it arrives.
  let syncing: Promise<void> | undefined

  /** A gap of which the hub has not told, or not legibly. */
  function unknownGap(id: string | null): SyncRequired {
    return { reason: 'unknown-id', channels: [], requested: current().sent ?? '', oldest: null, latest: id ?? '' }
  }

  return (generation) => {
    // The id that the last block of this connection left.
    let lastId = ''
    let greeted = false
    return receive

    function receive(block: Block): Promise<void> | undefined {
      if (syncing) return hold(syncing).then(() => receive(block))
      if (!isCurrent()) return
      const { type, data } = block
      // A block that names no id shows the one before it.
      const id = block.id === lastId ? null : block.id
      lastId = block.id
      if (type === undefined || data === undefined) return tell({ type: 'id', id: lastId })
      if (type === 'hello') return greet(data, id)
      if (type === 'sync-required') return sync(readObject<SyncRequired>(data) ?? unknownGap(id), id)
      if (isReservedType(type)) return tell({ type: 'id', id })
      // On a hub every event names its id (§4.3), so that the same id again is the same event again. Elsewhere it may be
      // another event, which names none.
      if (recentIds.has(lastId) && (greeted || id !== null)) return
      // The last id outlives its connection (§6), for an event that names none.
      handlers.event({ id: lastId || (current().cursor ?? ''), type, data })
      if (id) recentIds.add(id)
      return tell({ type: 'event', id })
    }

    function greet(data: string, id: string | null): Promise<void> | undefined {
      greeted = true
      tell({ type: 'hello', id, hello: readObject<Partial<Hello>>(data) ?? {} })
      if (current().astray) return sync(unknownGap(id), id)
    }

    function sync(gap: SyncRequired, id: string | null): Promise<void> | undefined {
      recentIds.clear()
      const settled = handlers.sync(gap)
      if (!settled) return tell({ type: 'id', id })
      syncing = settled.then(() => {
        syncing = undefined
        tell({ type: 'id', id })
      })
      return hold(syncing)
    }

    function hold(until: Promise<void>): Promise<void> {
      tell({ type: 'paused', paused: true })
      return until.then(() => tell({ type: 'paused', paused: false }))
    }

    function tell(report: Report): undefined {
      dispatch({ type: 'report', generation, report })
    }

    function isCurrent(): boolean {
      return current().generation === generation && isOpen(current())
    }
  }
}

export interface ReceiverOptions {
  current(): Connection
  dispatch(input: Input): void
  handlers: Handlers
}

/** When a promise comes back, the next block must wait for it. */
export type Receiver = (block: Block) => Promise<void> | undefined

function readObject<Shape extends object>(text: string): Shape | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Shape) : undefined
  } catch {
    // Not JSON: the caller goes on without it, as with JSON of another shape.
    return undefined
  }
}
