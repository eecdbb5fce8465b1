import { type Close, reservedTypes, type SyncRequired } from '@rejoin/protocol'
import { type Connection, isOpen, type Report } from './connection.ts'
import { duplicateNews, type Handlers, type RawEvent } from './handlers.ts'
import { createRecentIds } from './recent-ids.ts'
import { maxCursorLength } from './request.ts'
import type { Block } from './transports/transport.ts'

/**
 * Makes the receivers of a stream, one for each connection. A receiver brings blocks to the handlers, in order and once,
 * and only then lets the machine move the cursor: in the other order, a page that is left in between loses an event.
 *
 * @param handled - told that an event of a connection has been handled, and of its id, the new cursor, if it named one
 * @param synced - told that the user has dealt with a gap up to an id; with false when the connection that told of the gap
 * is over
 */
export function createReceivers(
  handlers: Pick<Handlers, 'event' | 'sync' | 'call'>,
  current: () => Connection,
  dispatch: (report: Report, generation: number) => void,
  handled: (generation: number, id: string | null) => void,
  synced: (id: string | null, isCurrent: boolean) => void,
): (generation: number) => Receiver {
  let isNew = createRecentIds()
  // The last event that named its id, of a server that is no hub.
  let last: { id: string; data: string } | undefined
  // A handler that later events have to wait for. Nothing is delivered meanwhile, on whichever connection it arrives.
  let busy: Promise<void> | undefined

  return (generation) => {
    // The id that the last block of this connection left.
    let lastId = ''
    let greeted = false
    return receive

    function receive(block: Block): Promise<void> | undefined {
      if (busy) return wait(busy, block)
      if (!isCurrent()) return
      const { type, data = '' } = block
      // An event that names no id shows the one before it.
      const isNamed = block.id !== lastId || type === undefined
      const isFirst = !lastId
      lastId = block.id
      // One that is too long to be sent back is no cursor: a little too much is replayed then, and nothing is missed.
      const id = isNamed && lastId.length <= maxCursorLength ? lastId : null
      if (type === undefined) return tell({ type: 'id', id })
      if ((reservedTypes as readonly string[]).includes(type)) return control(type, data, id)
      // The last id outlives its connection (§6), for an event that names none.
      const event = (lastId ? block : { ...block, id: current().cursor ?? '' }) as RawEvent
      // On a hub every event names its id (§4.3), so that the same id again is the same event again. Elsewhere ids may begin
      // again, as after a restart: there, only the event that a server resumes from is one that we have.
      if (greeted ? !isNew(lastId) : isFirst && lastId === last?.id && data === last.data) {
        void handlers.call(duplicateNews, event)
        // It counts all the same: its handler may have replaced the connection that brought it, and so kept the cursor
        // from moving.
        return void handled(generation, id)
      }
      if (!greeted && isNamed) last = { id: lastId, data }
      const settled = handlers.event(event)
      return settled ? after(settled, handled, id) : void handled(generation, id)
    }

    // A function of its own: a closure in `receive` would have the engine make room for its variables at every event.
    function wait(until: Promise<void>, block: Block): Promise<void> {
      return hold(until).then(() => receive(block))
    }

    function control(type: string, data: string, id: string | null): Promise<void> | undefined {
      const told = readObject(data)
      if (type === 'hello') {
        greeted = true
        tell({ type: 'hello', id, hello: told })
        if (current().astray) return sync(id)
      } else if (type === 'sync-required') {
        return sync(id, told)
      } else {
        tell({ type: 'id', id })
        const { reason = 'admin' }: Partial<Close> = told
        if (type === 'close') tell({ type: 'ended', reason })
      }
    }

    /** @param told - what the hub says of the gap; it may have said nothing, or nothing legible */
    function sync(id: string | null, told?: Partial<SyncRequired>): Promise<void> | undefined {
      tell({ type: 'sync' })
      if (!isCurrent()) return
      // The log may have another history now, in which an old id would mean another event.
      isNew = createRecentIds()
      const requested = current().sent ?? ''
      const settled = handlers.sync({
        reason: 'unknown-id',
        channels: [],
        requested,
        oldest: null,
        latest: id ?? '',
        ...told,
      })
      return settled ? after(settled, reloaded, id) : reloaded(generation, id)
    }

    function reloaded(_: number, id: string | null): undefined {
      synced(id, isCurrent())
      tell({ type: 'id', id })
    }

    function after(settled: Promise<unknown>, then: typeof handled, id: string | null): Promise<void> {
      busy = settled.then(() => {
        busy = undefined
        then(generation, id)
      })
      return hold(busy)
    }

    function hold(until: Promise<void>): Promise<void> {
      tell({ type: 'paused', paused: true })
      return until.then(() => tell({ type: 'paused', paused: false }))
    }

    function tell(report: Report): undefined {
      dispatch(report, generation)
    }

    function isCurrent(): boolean {
      return current().generation === generation && isOpen(current())
    }
  }
}

/** When a promise comes back, the next block must wait for it. */
export type Receiver = (block: Block) => Promise<void> | undefined

/** What a frame of the protocol says. Nobody has checked that it is what it should be. */
function readObject(text: string): object {
  try {
    return Object(JSON.parse(text)) as object
  } catch {
    // Not JSON: the caller goes on without it, as with JSON of another shape.
    return {}
  }
}
