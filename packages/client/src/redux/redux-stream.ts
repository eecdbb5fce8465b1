import type { Source } from '../bindings/shared-streams.ts'
import { type ConnectionView, createStreamStore } from '../bindings/stream-store.ts'
import type { AnyEvent, StreamEvent, SyncRequired } from '../event-stream.ts'
import type { Off } from '../handler-set.ts'
import type { ConnectOptions } from '../options.ts'

/**
 * A stream as actions of a Redux store: its events, what is gone, and its connection. Put `middleware` into the store, and
 * dispatch `open()` when the page begins: a server that makes a store for each request then opens no connection.
 *
 * | action | payload |
 * |---|---|
 * | `<name>/events` | the events of a frame, in order |
 * | `<name>/sync` | what is gone: load again what those events would have changed |
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

  return {
    types,
    open: () => ({ type: orders.open }),
    reconnect: () => ({ type: orders.reconnect }),
    close: () => ({ type: orders.close }),
    reducer(state = initial, action) {
      const { type, payload } = action as { type: string; payload: ConnectionState }
      return type === types.connection ? payload : state
    },
    middleware(api) {
      let events: StreamEvent[] = []
      let off: Off | undefined
      const store = createStreamStore(source, { ...rest, keep: 0, onEvent, onSync: sync }, true)
      return (next) => (action) => {
        const { type } = action as { type?: unknown }
        if (type === orders.open && !off) {
          off = store.subscribe(show)
          show()
        }
        if (type === orders.reconnect) store.getSnapshot().reconnect()
        if (type === orders.close) {
          off?.()
          off = undefined
          api.dispatch({ type: types.connection, payload: initial })
        }
        return next(action)
      }

      function onEvent(event: StreamEvent): void {
        if (!events.length) queueMicrotask(flush)
        events.push(event)
      }

      function flush(): void {
        const payload = events
        events = []
        if (payload.length) api.dispatch({ type: types.events, payload })
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

/** Without what Redux cannot store. */
function stateOf({
  state,
  attempt,
  nextRetryAt,
  retryInSeconds,
  stale,
  closeReason,
  closeMessage,
  transport,
}: ConnectionView): ConnectionState {
  return { state, attempt, nextRetryAt, retryInSeconds, stale, closeReason, closeMessage, transport }
}

export interface ReduxStreamOptions<Events extends object> extends Omit<ConnectOptions, 'keep'> {
  /**
   * What the types of the actions begin with. Give each stream of a store its own.
   * @defaultValue 'stream'
   */
  name?: string
  /**
   * Called when events are gone, after the action `<name>/sync`. Later events wait for a promise that it returns, such as
   * that of a thunk which loads the state again.
   * @defaultValue none
   */
  onSync?: (gap: SyncRequired<Events>, store: StoreApi) => unknown
}

/** What a middleware gets of its store. Declared here, so that no version of Redux is asked for. */
export interface StoreApi {
  dispatch(action: { type: string; payload?: unknown }): unknown
  getState(): unknown
}

export type ConnectionState = Omit<ConnectionView, 'reconnect'>

export interface ReduxStream<Events extends object> {
  readonly middleware: (api: StoreApi) => (next: (action: unknown) => unknown) => (action: unknown) => unknown
  /** Keeps the connection in the store, for a banner. */
  reducer(state: ConnectionState | undefined, action: unknown): ConnectionState
  /** Connects, or does nothing if that was done. */
  open(): { type: string }
  /** Connects now, from the cursor, also after the server has refused the stream. */
  reconnect(): { type: string }
  /** Lets go of the stream. `open` goes on at its cursor. */
  close(): { type: string }
  /** The types of the actions that the stream dispatches. */
  readonly types: { readonly events: string; readonly sync: string; readonly connection: string }
  /** Only for types: the events in the payload of `<name>/events`. */
  readonly event?: AnyEvent<Events>
}
