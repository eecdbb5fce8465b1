import { systemClock } from '../clock.ts'
import type { AnyEvent, EventStream, StreamEvent, SyncRequired } from '../event-stream.ts'
import { callHandler, isPromise, type Off } from '../handler-set.ts'
import type { ConnectOptions } from '../options.ts'
import type { StreamState } from '../stream-state.ts'
import { nextFrame } from './frame.ts'
import { joinStream, type Membership, type Source, streamOf } from './shared-streams.ts'

/**
 * What a component shows of a stream, for any framework that can `subscribe` and read a snapshot. The store joins the
 * stream with its first subscriber and leaves it with the last. It collects events as they arrive, and calls
 * subscribers once per frame. A store that gets subscribers again continues at its cursor.
 *
 * @param reads - false for a store that shows only the connection, and ignores events
 */
export function createStreamStore(source: Source, given: StoreOptions, reads: boolean): StreamStore {
  const { clock = systemClock } = given
  const state = source ? 'connecting' : 'closed'
  const idle = {
    state,
    attempt: 0,
    nextRetryAt: null,
    stale: false,
    closeReason: null,
    closeMessage: null,
    transport: 'fetch',
  }
  const listeners = new Set<() => void>()
  let options = given
  let value: unknown = given.reduce ? given.initial : []
  let events: StreamEvent[] = []
  let stream: EventStream | undefined
  let membership: Membership | undefined
  /** How to take each handler off the stream; empty while the store is not attached. The third is for gaps. */
  let offs: (Off | false)[] = []
  let cursor: string | null = null
  let timer: unknown
  let error: unknown
  const serverView = viewOf(undefined)
  let view = viewOf(streamOf(source))

  return {
    subscribe(listener) {
      listeners.add(listener)
      if (source) membership ??= joinStream(source, options, attach, cursor)
      return () => {
        listeners.delete(listener)
        if (listeners.size) return
        membership?.leave()
        membership = undefined
      }
    },
    getSnapshot() {
      if (error) throw error
      return view
    },
    getServerSnapshot: () => serverView,
    update(next) {
      options = next
      watchGaps()
      membership?.renew(next)
    },
  }

  function attach(open: () => EventStream): Off | undefined {
    try {
      stream = open()
    } catch (thrown) {
      error = thrown
      nextFrame(tell)
      return
    }
    // A list begins with the events that the stream still shows.
    if (reads && !options.reduce && cursor !== stream.cursor) value = kept(stream.getSnapshot().events)
    offs = [stream.onState(changed), reads && stream.on('*', (event) => changed(events.push(event)))]
    watchGaps()
    return () => {
      clock.clearTimeout(timer)
      for (const off of offs) if (off) off()
      offs = []
      take()
      cursor = stream!.cursor
    }
  }

  /** Only once there is an `onSync`: a stream without a handler for gaps warns of them. */
  function watchGaps(): void {
    if (reads && offs.length && options.onSync) offs[2] ??= stream!.onSync(sync)
  }

  function changed(_: unknown): void {
    nextFrame(show)
  }

  function show(): void {
    take()
    const next = viewOf(stream)
    clock.clearTimeout(timer)
    const { nextRetryAt } = next
    // Shows the next second of the countdown.
    const leftMs = (nextRetryAt ?? 0) - clock.now()
    if (leftMs > 0 && membership) timer = clock.setTimeout(show, leftMs % 1000 || 1000)
    if (Object.entries(next).every(([name, value]) => value === view[name as keyof StoreView])) return
    view = next
    tell()
  }

  function tell(): void {
    for (const listener of listeners) listener()
  }

  /** Adds the events that have arrived to the value. */
  function take(): void {
    const taken = events
    if (!taken.length) return
    events = []
    const { reduce, onEvent } = options
    for (const event of taken) {
      if (onEvent) void callHandler(onEvent, event)
      if (!reduce) continue
      void callHandler((it) => {
        value = reduce(value, it)
      }, event)
    }
    if (!reduce) value = kept([...(value as StreamEvent[]), ...taken])
  }

  function kept(list: readonly StreamEvent[]): readonly StreamEvent[] {
    const { keep = 100 } = options
    return keep ? list.slice(-keep) : (value as StreamEvent[])
  }

  function sync(gap: SyncRequired): unknown {
    // Events from before the gap belong to the value that is replaced.
    take()
    const loaded = options.onSync?.(gap)
    return isPromise(loaded) ? loaded.then(replace) : replace(loaded)
  }

  function replace(loaded: unknown): void {
    if (options.reduce && loaded !== undefined) value = loaded
    changed(loaded)
  }

  function viewOf(shown: EventStream | undefined): StoreView {
    const { cursor, lastEventAt, ...rest } = (shown?.state ?? idle) as StreamState
    const { nextRetryAt } = rest
    const retryInSeconds = nextRetryAt && Math.max(Math.ceil((nextRetryAt - clock.now()) / 1000), 1)
    // Without `cursor` and `lastEventAt`, which change with every event: a component that shows no events must not
    // render then.
    return { ...rest, events: undefined, retryInSeconds, [given.reduce ? 'value' : 'events']: value, reconnect }
  }

  function reconnect(): void {
    stream?.reconnect()
  }
}

/** What a component can ask of a stream, besides the options of `connect`. */
export interface EventOptions<Events extends object, Loaded = unknown> extends ConnectOptions {
  /**
   * Called with every event, once and in order, also when nothing is rendered for it. Use it for effects that are not
   * state of the component, such as a message that disappears by itself, or the cache of another library. With `keep:
   * 0`, no event makes the component render.
   * @defaultValue none
   */
  onEvent?: (event: AnyEvent<Events>) => unknown
  /**
   * Called when events are gone that the component should have had. Load the state that they would have changed. Later
   * events wait for the promise that it returns. With `reduce`, the returned value replaces the value, unless it is
   * `undefined`.
   * @defaultValue none: a warning appears on the console
   */
  onSync?: (gap: SyncRequired<Events>) => Loaded | Promise<Loaded>
}

/** A value that is computed from all events. */
export interface Reduction<Events extends object, Value> {
  /**
   * Returns the next value from the last value and an event. Called once for each event, in order. Must not change the
   * last value.
   */
  reduce: (value: Value, event: AnyEvent<Events>) => Value
  /** The value before the first event. */
  initial: Value
}

/** What a component shows of a connection. The same object until something in it changes. */
export interface ConnectionView
  extends Pick<
    StreamState,
    'state' | 'attempt' | 'nextRetryAt' | 'stale' | 'closeReason' | 'closeMessage' | 'transport'
  > {
  /** Whole seconds until the next attempt, at least 1, for a countdown; `null` when none is planned. */
  readonly retryInSeconds: number | null
  /** Connects now, from the cursor. Also opens a closed stream again, unless its owner has closed it. */
  reconnect(): void
}

/** The connection and the last events. */
export interface EventsView<Events extends object> extends ConnectionView {
  /** The last `keep` events, oldest first; 100 by default. */
  readonly events: readonly AnyEvent<Events>[]
}

/** The connection, and the value that `reduce` has computed from all events. */
export interface ValueView<Value> extends ConnectionView {
  readonly value: Value
}

/** The options of any component. The functions are declared as methods, so that they take events of any type. */
export interface StoreOptions extends ConnectOptions {
  onEvent?(event: StreamEvent): unknown
  onSync?(gap: SyncRequired): unknown
  reduce?(value: unknown, event: StreamEvent): unknown
  initial?: unknown
}

export interface StoreView extends ConnectionView {
  readonly events?: unknown
  readonly value?: unknown
}

export interface StreamStore {
  subscribe(listener: () => void): Off
  /** @throws the error of `connect`, for an error boundary */
  getSnapshot(): StoreView
  /** The view for server rendering and for hydration: nothing has arrived yet. */
  getServerSnapshot(): StoreView
  /**
   * Takes over the options of the latest rendering. Credentials, `fetch`, `keep` and functions are used from now on,
   * other options are not.
   */
  update(options: StoreOptions): void
}
