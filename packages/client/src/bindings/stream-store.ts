import { systemClock } from '../clock.ts'
import type { AnyEvent, EventStream, StreamEvent, SyncRequired } from '../event-stream.ts'
import { callHandler, type Off } from '../handler-set.ts'
import type { ConnectOptions } from '../options.ts'
import type { StreamState } from '../stream-state.ts'
import { nextFrame } from './frame.ts'
import { join, type Leave, type Source, streamOf } from './shared-streams.ts'
import type { Member } from './stream-group.ts'

/**
 * What a component shows of a stream, for any framework that can `subscribe` and read a snapshot. The store joins the
 * stream with its first subscriber and leaves it with the last. It handles events as they arrive, and calls subscribers
 * once per frame. A store that gets subscribers again continues at its cursor.
 *
 * @param reads - false for a store that shows only the connection, and ignores events
 * @param watch - sees whose credentials a function gives
 */
export function createStreamStore(
  source: Source,
  given: StoreOptions,
  reads: boolean,
  watch?: Member['watch'],
): StreamStore {
  const { clock = systemClock } = given
  const state = source ? 'connecting' : 'closed'
  const idle = {
    state,
    attempt: 0,
    nextRetryAt: null,
    stale: !source,
    opened: false,
    closeReason: null,
    closeMessage: null,
    transport: 'fetch',
  }
  const listeners = new Set<() => void>()
  let value: unknown
  /** Events that the list does not show yet. */
  let arrived: StreamEvent[] = []
  let stream: EventStream | undefined
  let offState: Off | undefined
  let leave: Leave | undefined
  let timer: unknown
  let error: unknown
  empty()
  const serverView = viewOf(undefined)
  let view = viewOf(streamOf(source, given))

  const member: Member = {
    reads,
    watch,
    options: given,
    isIn: false,
    cursor: null,
    leftAt: 0,
    begin(next, isFresh) {
      offState?.()
      stream = next
      offState = stream.onState(changed)
      // A list begins with the events that the stream still shows.
      if (reads && !member.options.reduce && (isFresh || !(value as unknown[]).length))
        value = kept(stream.getSnapshot().events)
      changed()
    },
    receive,
    sync,
    end(isOther) {
      clock.clearTimeout(timer)
      offState?.()
      take()
      stream = undefined
      if (!member.isIn || !isOther) return
      // It goes on with the stream of another user.
      member.cursor = null
      empty()
      // A hidden page has no frame that would remove the values of the user before.
      show()
    },
    fail(thrown) {
      error = thrown
      nextFrame(tell)
    },
  }

  return {
    subscribe(listener) {
      if (source && !listeners.size) leave = join(source, member)
      listeners.add(listener)
      return () => {
        listeners.delete(listener)
        if (!listeners.size) leave?.()
      }
    },
    getSnapshot() {
      if (error) throw error
      return view
    },
    getServerSnapshot: () => serverView,
    update(next) {
      const before = member.options
      member.options = next
      member.group?.renew(member, before)
    },
    cursor: () => stream?.cursor ?? null,
    close(cursor) {
      listeners.clear()
      leave?.(true)
      if (cursor !== undefined) member.cursor = cursor
    },
  }

  function empty(): void {
    value = given.reduce ? given.initial : []
  }

  function changed(): void {
    nextFrame(show)
  }

  function show(): void {
    take()
    const next = viewOf(stream)
    clock.clearTimeout(timer)
    const { nextRetryAt } = next
    // Shows the next second of the countdown.
    const leftMs = (nextRetryAt ?? 0) - clock.now()
    if (leftMs > 0 && member.isIn) timer = clock.setTimeout(show, leftMs % 1000 || 1000)
    if (Object.entries(next).every(([name, value]) => value === view[name as keyof StoreView])) return
    view = next
    tell()
  }

  function tell(): void {
    for (const listener of listeners) listener()
  }

  /**
   * The handlers run when the event arrives, and not with the frame that shows it: the cursor that `persist` stores moves
   * once they have run. A page that is left before its next frame would lose the event, and a hidden page has no frames.
   */
  function receive(event: StreamEvent): Promise<unknown> | undefined {
    const { reduce, onEvent } = member.options
    const settled = onEvent && callHandler((it) => onEvent(it), event)
    if (reduce) {
      void callHandler((it) => {
        value = reduce(value, it)
      }, event)
    } else arrived.push(event)
    changed()
    return settled
  }

  /** Adds the events that have arrived to the list. */
  function take(): void {
    const taken = arrived
    if (!taken.length) return
    arrived = []
    value = kept([...(value as StreamEvent[]), ...taken])
  }

  function kept(list: readonly StreamEvent[]): readonly StreamEvent[] {
    const { keep = 100 } = member.options
    return keep ? list.slice(-keep) : (value as StreamEvent[])
  }

  function sync(gap: SyncRequired): unknown {
    const { onSync } = member.options
    return onSync && callHandler(async () => replace(await onSync(gap)), gap)
  }

  function replace(loaded: unknown): void {
    if (member.options.reduce && loaded !== undefined) value = loaded
    changed()
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
   * 0`, no event makes the component render. The cursor that `persist` stores waits for the promise that it returns.
   * @defaultValue none
   */
  onEvent?: ((event: AnyEvent<Events>) => unknown) | undefined
  /**
   * Called when events are gone that the component should have had. Load the state that they would have changed. Later
   * events wait for the promise that it returns. With `reduce`, the returned value replaces the value, unless it is
   * `undefined`.
   * @defaultValue none: a warning appears on the console
   */
  onSync?: ((gap: SyncRequired<Events>) => Loaded | Promise<Loaded>) | undefined
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
    'state' | 'attempt' | 'nextRetryAt' | 'stale' | 'opened' | 'closeReason' | 'closeMessage' | 'transport'
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

/** The options of any component. */
export interface StoreOptions extends ConnectOptions {
  onEvent?: StoreFunctions['onEvent'] | undefined
  onSync?: StoreFunctions['onSync'] | undefined
  reduce?: StoreFunctions['reduce'] | undefined
  initial?: unknown
}

/** Declared as methods, so that they take events of any type. */
interface StoreFunctions {
  onEvent(event: StreamEvent): unknown
  onSync(gap: SyncRequired): unknown
  reduce(value: unknown, event: StreamEvent): unknown
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
  /** Up to where `onEvent` has got all events; inside `onEvent`, up to the event before. */
  cursor(): string | null
  /**
   * Leaves at once. Nothing that was open is used again: the next subscriber continues at the cursor, on a new stream.
   *
   * @param cursor - an earlier one, to get the events after it again
   */
  close(cursor?: string | null): void
}
