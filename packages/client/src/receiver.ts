import { type Close, type Hello, reservedTypes, type SyncRequired } from '@rejoin/protocol'
import { type Connection, isOpen } from './connection.ts'
import type { Report } from './connection-input.ts'
import { duplicateNews, type Handlers, type RawEvent } from './handlers.ts'
import { createRecentIds } from './recent-ids.ts'
import { maxCursorLength } from './request.ts'
import type { Block } from './transports/transport.ts'

/**
 * Makes the receivers of a stream, one for each connection. A receiver brings blocks to the handlers, in order and
 * once. Only then does it let the machine move the cursor: in the other order, a page that is left in between would
 * lose an event.
 *
 * @param handled - called when an event has been handled, with its generation and its id, if it named one
 * @param synced - called when the user has dealt with a gap, with the id up to which; `isCurrent` is false when the
 * connection that told of the gap has ended
 */
export function createReceivers(
  handlers: Pick<Handlers, 'event' | 'sync' | 'call'>,
  current: () => Connection,
  dispatch: (report: Report, generation: number) => void,
  handled: (generation: number, id: string | null) => void,
  synced: (id: string | null, isCurrent: boolean) => void,
): (generation: number) => Receiver {
  let isNew = createRecentIds()
  // The id and the data of the last event with an id, from a server that is no hub.
  let last: string | undefined
  // The handler that later events have to wait for. Until it settles, nothing is delivered, on any connection.
  let busy: Promise<void> | undefined

  return (generation) => {
    // The last id of this connection.
    let lastId = ''
    let greeted = false
    let isFirst = true
    return receive

    function receive(block: Block): Promise<void> | undefined {
      if (busy) return wait(busy, block)
      if (!isCurrent()) return
      const { type, data = '' } = block
      // An event that names no id carries the id before it.
      const isNamed = block.id !== lastId || type === undefined
      const isFirstId = !lastId
      lastId = block.id
      // An id that is too long to be sent back is no cursor. A reconnect then replays a little too much, and misses
      // nothing.
      const id = isNamed && lastId.length <= maxCursorLength ? lastId : null
      if (type === undefined) return tell({ type: 'id', id })
      if ((reservedTypes as readonly string[]).includes(type)) {
        const told = readObject(data)
        // Other servers use these types for events of their own. A hub shows itself by `hello` (§4.4).
        greeted ||= type === 'hello' && isHello(told)
        // Before `hello` it may send `close` (§4.12). A server that has sent events may mean something else by that.
        const { isHub, opened } = current()
        if (greeted || (isFirst && type === 'close' && (isHub || !opened))) return control(type, told, id)
      }
      isFirst = false
      // An event that names no id gets the last id of the stream, which outlives its connection (§6).
      const event = (lastId ? block : { ...block, id: current().cursor ?? '' }) as RawEvent
      // On a hub every event names its id (§4.3), so the same id means the same event. On another server ids may start
      // again, as after a restart. There, only the event that the server resumes from counts as a repetition.
      if (greeted ? !isNew(lastId) : isFirstId && `${lastId}\n${data}` === last) {
        void handlers.call(duplicateNews, event)
        // A repetition counts as handled too: its handler may have replaced the connection that brought it first, which
        // kept the cursor from moving.
        return void handled(generation, id)
      }
      if (!greeted && isNamed) last = `${lastId}\n${data}`
      const settled = handlers.event(event)
      return settled ? after(settled, handled, id) : void handled(generation, id)
    }

    // A separate function: with a closure in `receive`, the engine would allocate its variables at every event.
    function wait(until: Promise<void>, block: Block): Promise<void> {
      return hold(until).then(() => receive(block))
    }

    function control(type: string, told: Told, id: string | null): Promise<void> | undefined {
      if (type === 'hello') {
        tell({ type: 'hello', id, hello: told })
        if (current().astray) return sync(id)
      } else if (type === 'sync-required') {
        return sync(id, told)
      } else {
        tell({ type: 'id', id })
        if (type === 'close') tell({ type: 'ended', reason: (told as Partial<Close>).reason ?? 'admin' })
      }
    }

    /** @param told - what the hub says of the gap; empty or missing when the hub said nothing that can be read */
    function sync(id: string | null, told?: Partial<SyncRequired>): Promise<void> | undefined {
      tell({ type: 'sync' })
      if (!isCurrent()) return
      // The log may have another history now, in which an old id means another event.
      isNew = createRecentIds()
      const settled = handlers.sync({
        reason: 'unknown-id',
        channels: [],
        requested: current().sent ?? '',
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

/** When it returns a promise, the next block must wait for it. */
export type Receiver = (block: Block) => Promise<void> | undefined

/** Whether this is the data of a hub's `hello`, and not of another server's event of that type (§4.4). */
export function isHello({ resumed }: Told): boolean {
  return typeof resumed === 'boolean'
}

/** The fields of control frames, as far as they are there. */
type Told = Partial<Hello & Omit<SyncRequired, 'reason'>> & { readonly reason?: never }

/** The data of a control frame. */
export function readObject(text: string): Told {
  try {
    return Object(JSON.parse(text)) as Told
  } catch {
    // Not JSON: treated like an object without fields.
    return {}
  }
}
