import { nextFrame } from '../bindings/frame.ts'
import type { Source } from '../bindings/shared-streams.ts'
import { type ConnectionView, createStreamStore, type StoreView, type StreamStore } from '../bindings/stream-store.ts'
import type { AnyEvent, StreamEvent, SyncRequired } from '../event-stream.ts'
import { callHandler } from '../handler-set.ts'
import type { ConnectOptions } from '../options.ts'

/**
 * A stream as actions of a Redux store: its events, its gaps and its connection. Put `middleware` into the store, and
 * dispatch `open()` when the page starts. A server that makes a store for each request then opens no connection.
 *
 * | action | payload |
 * |---|---|
 * | `<name>/events` | the events of a frame, in order |
 * | `<name>/sync` | the gap: load the state again that the missing events would have changed |
 * | `<name>/connection` | the connection, also every second of a countdown |
 */
export function createReduxStream<Events extends object = Record<string, unknown>>(
  source: Source,
  options: ReduxStreamOptions<Events> = {},
): ReduxStream<Events> {
  const { name = 'stream', onSync, ...rest } = options
  const types = { events: `${name}/events`, sync: `${name}/sync`, connection: `${name}/connection` }
  const orders = { open: `${name}/open`, reconnect: `${name}/reconnect`, close: `${name}/close` }
  const initial = stateOf(createStreamStore(null, {}, false).getSnapshot())
  /** Ends the stream in the store that opened it last. */
  let endLast: (() => void) | undefined

  return {
    types,
    open: (identity) => ({ type: orders.open, payload: identity }),
    reconnect: () => ({ type: orders.reconnect }),
    close: () => ({ type: orders.close }),
    reducer(state = initial, action) {
      const { type, payload } = action as { type: string; payload: ConnectionState }
      return type === types.connection ? payload : state
    },
    middleware(api) {
      let batch: Batch | undefined
      let user = options.identity
      let store = newStore()
      let isOpen = false
      return (next) => (action) => {
        const { type, payload } = action as { type?: unknown; payload?: string }
        if (type === orders.open) open(payload)
        if (type === orders.reconnect) store.getSnapshot().reconnect()
        if (type === orders.close) end()
        return next(action)
      }

      function newStore(): StreamStore {
        return createStreamStore(source, { ...rest, identity: user, keep: 0, onEvent, onSync: sync }, true)
      }

      function open(identity = options.identity): void {
        if (identity !== user) {
          close()
          user = identity
          store = newStore()
        }
        if (isOpen) return
        // A page that makes a store for each user may have left the last one open.
        endLast?.()
        endLast = end
        isOpen = true
        store.subscribe(show)
        show()
      }

      /**
       * Events that wait for their frame are dropped, and `open` asks for them again: the data of this user may have been
       * removed from the store already. The promise of these events never settles, so a stored cursor stays before them.
       */
      function close(): void {
        isOpen = false
        if (endLast === end) endLast = undefined
        store.close(batch?.after)
        batch = undefined
      }

      function end(): void {
        close()
        api.dispatch({ type: types.connection, payload: initial })
      }

      /** @returns a promise for the dispatch, so that the stored cursor waits for it */
      function onEvent(event: StreamEvent): Promise<unknown> {
        batch ??= newBatch()
        batch.events.push(event)
        return batch.dispatched
      }

      function newBatch(): Batch {
        const it = { after: store.cursor(), events: [] } as Partial<Batch> as Batch
        it.dispatched = new Promise((resolve) => {
          it.settle = resolve
          nextFrame(() => it === batch && flush())
        })
        return it
      }

      function flush(): void {
        const it = batch
        batch = undefined
        it?.settle(callHandler(api.dispatch, { type: types.events, payload: it.events }))
      }

      function sync(gap: SyncRequired): unknown {
        flush()
        api.dispatch({ type: types.sync, payload: gap })
        return onSync?.(gap as SyncRequired<Events>, api)
      }

      function show(): void {
        api.dispatch({ type: types.connection, payload: stateOf(store.getSnapshot()) })
      }
    },
  }
}

/** The events of a frame. */
interface Batch {
  /** The cursor before these events. */
  after: string | null
  events: StreamEvent[]
  /** Settles when the action has been dispatched, and the promise has settled that a middleware returned for it. */
  dispatched: Promise<unknown>
  settle(dispatched: unknown): void
}

/** The view without `reconnect`, because Redux cannot store functions, and without events, which have their own action. */
function stateOf({ reconnect, events, value, ...state }: StoreView): ConnectionState {
  return state
}

export interface ReduxStreamOptions<Events extends object> extends Omit<ConnectOptions, 'keep'> {
  /**
   * The prefix of the action types. Give each stream of a store its own name.
   * @defaultValue 'stream'
   */
  name?: string | undefined
  /**
   * Called when events are gone, after the action `<name>/sync`. Later events wait for the promise that it returns, for
   * example from a thunk that loads the state again.
   * @defaultValue none
   */
  onSync?: ((gap: SyncRequired<Events>, store: StoreApi) => unknown) | undefined
}

/** The part of a store that a middleware gets. Declared here, so that no version of Redux is required. */
export interface StoreApi {
  dispatch(action: { type: string; payload?: unknown }): unknown
  getState(): unknown
}

export type ConnectionState = Omit<ConnectionView, 'reconnect'>

export interface ReduxStream<Events extends object> {
  readonly middleware: (api: StoreApi) => (next: (action: unknown) => unknown) => (action: unknown) => unknown
  /** Keeps the connection in the store, for a banner. */
  reducer(state: ConnectionState | undefined, action: unknown): ConnectionState
  /**
   * Connects. Does nothing when the stream is already open for this user.
   *
   * @param identity - the id of the signed-in user. For another user than before, the stream starts anew. Without it,
   * the `identity` of the options counts.
   */
  open(identity?: string): { type: string; payload: string | undefined }
  /** Connects now, from the cursor. Also opens a stream again that the server has rejected. */
  reconnect(): { type: string }
  /** Closes the connection at once. A later `open` for the same user goes on at the cursor, on another connection. */
  close(): { type: string }
  /** The types of the actions that the stream dispatches. */
  readonly types: { readonly events: string; readonly sync: string; readonly connection: string }
  /** Only for its type: an event in the payload of `<name>/events`. */
  readonly event?: AnyEvent<Events>
}
