import type { EventsOf, Schemas } from '@rejoin/protocol'
import { invalidOption, resolveAddress } from './address.ts'
import { maxTimerMs } from './backoff.ts'
import { systemClock } from './clock.ts'
import { isOpen, type Moment, newConnection, shownFields, step } from './connection.ts'
import type { Input, Report } from './connection-input.ts'
import type { AnyEvent, EventStream, OtherTypes, StreamSnapshot } from './event-stream.ts'
import { callHandler, createHandlerSet, type Handler, type Off, report } from './handler-set.ts'
import { createHandlers, duplicateNews, invalidNews, type ReadPolicy, syncNews } from './handlers.ts'
import { iterate } from './iteration.ts'
import type { ConnectOptions } from './options.ts'
import { createReceivers } from './receiver.ts'
import { isCursor, optional } from './request.ts'
import type { StreamState, TransportName } from './stream-state.ts'
import { createTransport } from './transports/fetch.ts'
import type { Transport, TransportParts } from './transports/transport.ts'
import { isHidden, onWake } from './wake.ts'

/**
 * Opens a stream that keeps its cursor: it reconnects by itself and asks for the events that it missed.
 *
 * @param url - of the stream; in a page, it may be relative
 * @throws RejoinError `invalid-option`, when the URL, the cursor or a number cannot be used
 */
export function connect<Given extends Schemas>(
  url: string | URL,
  options: ConnectOptions & { schemas: Given },
): EventStream<EventsOf<Given>> & OtherTypes
export function connect<Events extends object = Record<string, unknown>>(
  url: string | URL,
  options: ConnectOptions & { parse: 'text'; schemas?: undefined },
): EventStream<{ [Type in keyof Events]: string }>
export function connect<Events extends object = Record<string, unknown>>(
  url: string | URL,
  options?: ConnectOptions,
): EventStream<Events>
export function connect<Events extends object>(url: string | URL, options: ConnectOptions = {}): EventStream<Events> {
  const {
    clock = systemClock,
    from = null,
    persist,
    pauseWhenHidden,
    reports,
    schemas,
    signal,
    backoff,
    shareAcrossTabs,
    transports = defaultTransports,
  } = options
  const numbers = { retryMs: 500, maxRetryMs: 30_000, maxRetries: Infinity, keep: 100 }
  for (const key in numbers) {
    const name = key as keyof typeof numbers
    numbers[name] = options[name] ?? numbers[name]
    if (!(numbers[name] >= 0)) throw invalidOption(`${name} is ${numbers[name]}. Give 0 or more.`)
  }
  if (from !== null && !isCursor(from)) throw invalidOption(`from is ${from}. Give an id.`)
  const address = resolveAddress(url)
  const policy: Policy = {
    ...options,
    ...numbers,
    // Polls need parameters.
    tiers: transports.length,
    canRefresh: [options.headers, options.token].some((given) => typeof given === 'function'),
    // Nothing tells a worker, or Node, that it was frozen or asleep. A late tick does.
    tickMs: globalThis.document ? Infinity : 1000,
    random: () => clock.random(),
  }

  let connection = newConnection(from, `${Math.random()}`)
  let begun: boolean | undefined
  // The connection whose last events the machine has not counted yet, and the cursor after them. A step per event would
  // be the most expensive part of a small event, so the events of a chunk share one step. Users cannot see the
  // difference.
  let pending = 0
  let pendingId: string | null = null
  let shown: StreamSnapshot | undefined
  let heard: StreamSnapshot | undefined
  let notified: StreamState | undefined
  // Removes the listeners of the page and of `signal` when the stream closes.
  let life: AbortController | undefined
  let controller = new AbortController()
  let timer: unknown
  const stateHandlers = createHandlerSet<StreamState>()
  const listeners = createHandlerSet<void>()
  const handlers = createHandlers(policy, () => connection.state !== 'closed')
  const receiverFor = createReceivers(handlers, () => connection, dispatch, handled, synced)
  const parts: TransportParts = [address, options, clock, handlers]
  const effects = { abort: () => controller.abort(), timer: setTimer, open, warn: handlers.warn, renew, notify }

  const stream: EventStream<Events> = {
    get state() {
      return show()
    },
    get cursor() {
      return show().cursor
    },
    on: handlers.on,
    onSync: (handler) => handlers.on(syncNews, handler),
    onInvalid: (handler) => handlers.on(invalidNews, handler),
    onDuplicate: (handler) => handlers.on(duplicateNews, handler),
    onState,
    subscribe(listener) {
      // The last events are those of all types, so this announces a reader of all types.
      if (numbers.keep) handlers.on('*', () => undefined)()
      return listeners.add(listener)
    },
    getSnapshot: show as () => StreamSnapshot<Events>,
    iterate: (given) => iterate(handlers.on, onState, given?.signal) as AsyncGenerator<AnyEvent<Events>, void>,
    [Symbol.asyncIterator]: () => stream.iterate(),
    reconnect: () => dispatch({ type: 'connect' }),
    reset() {
      dispatch({ type: 'id', id: '' })
      dispatch({ type: 'connect' })
    },
    close,
  }

  listen()
  try {
    if (process.env.NODE_ENV !== 'production') {
      void import('./option-check.ts').then((it) => it.checkOptions(options), report)
      void import('./origin-hint.ts').then((it) => it.hintAtOrigin(address, onState, () => connection.asking), report)
      if (!shareAcrossTabs) void import('./stream-count.ts').then((it) => it.countStream(address, onState), report)
    }
  } catch {
    // Bundlers replace `process.env.NODE_ENV`. A page without a bundler has no `process`, and counts as production.
  }
  if (persist || backoff || shareAcrossTabs || reports || schemas) {
    void optional()
      // A second try: one failed request for the chunk would lose the stored cursor.
      .catch(optional)
      .then((it) => it.prepare(options, policy, address, show, onState, listeners.add, handlers.on, clock))
      .catch(report)
      .then(begin)
  } else begin()
  return stream

  function begin(found?: unknown): void {
    begun = true
    const cursor = (found as string | null) ?? from
    connection = { ...connection, cursor, isLost: persist && !from && found === undefined }
    dispatch({ type: pauseWhenHidden && isHidden() ? 'hide' : 'connect' })
  }

  function listen(): void {
    life = new AbortController()
    onWake((type) => dispatch({ type }), pauseWhenHidden, life.signal)
    signal?.addEventListener('abort', close, { signal: life.signal })
    if (signal?.aborted) close()
  }

  function close(): void {
    dispatch({ type: 'close' })
  }

  function dispatch(input: Input, generation?: number): void {
    // Before its store has answered, a stream does not know where to start.
    if (!begun && input.type !== 'close') return
    flush()
    const isAwaited = !backoff && numbers.maxRetries === Infinity && !isHidden()
    const taken = step(connection, input, { now: clock.now(), isAwaited, ...policy }, generation)
    connection = taken.connection
    for (const effect of taken.effects) effects[effect]()
    if (listeners.isEmpty() || show() === heard) return
    heard = shown
    void listeners.call(undefined, () => heard === shown)
  }

  function handled(generation: number, id: string | null): void {
    if (!pending) queueMicrotask(flush)
    pending = generation
    pendingId = id ?? pendingId
  }

  function flush(): void {
    const generation = pending
    const id = pendingId
    pending = 0
    pendingId = null
    if (!generation) return
    dispatch({ type: 'event', id }, generation)
    // Drops the events beyond `keep`.
    show()
  }

  function synced(id: string | null, isCurrent: boolean): void {
    // The gap of the channels in `?added` has been dealt with. Without this, the hub would tell of it on every
    // connection (§3.3).
    // Even when nothing is deleted, the query is written anew.
    address.searchParams.delete('added')
    if (isCurrent) return
    // The user has loaded everything up to this id. A connection that was made meanwhile asked for events before it and
    // would tell of the same gap. If the user reconnects at a gap, that would go on for ever.
    dispatch({ type: 'id', id })
    if (isOpen(connection)) dispatch({ type: 'connect' })
  }

  function setTimer(): void {
    clock.clearTimeout(timer)
    const waitMs = connection.timerAt - clock.now()
    // A timer that fires too early is set again.
    if (waitMs < Infinity) timer = clock.setTimeout(() => dispatch({ type: 'timer' }), Math.min(waitMs, maxTimerMs))
  }

  function open(): void {
    const request = connection
    const { generation } = request
    controller = new AbortController()
    const { signal } = controller
    if (!life) listen()
    const tell = (report: Report) => dispatch(report, generation)
    const sink = { tell, receive: receiverFor(generation) }
    // Not in this turn: a transport asks the user's code for headers, and that code may use the stream that `connect`
    // has not returned yet.
    void loadTransport(transports[request.tier], parts)
      .then<unknown, unknown>(
        // The stream was closed or reconnected meanwhile: this connection is not needed.
        (transport) => signal.aborted || (policy.share?.(transport) ?? transport)(request, sink, signal),
        // The chunk may be gone for good after a deployment, and another transport is better than none.
        () => transports[1] && tell({ type: 'unusable' }),
      )
      // A failure counts as an end. A browser shows its cause on the console.
      .catch(() => undefined)
      .then(() => tell({ type: 'ended' }))
  }

  function renew(): void {
    const { signal } = controller
    const { generation } = connection
    void optional()
      .then((it) => it.renewHeaders(options, signal, dispatch, generation))
      .catch(report)
  }

  function notify(): void {
    if (connection.state === 'closed') {
      life?.abort()
      life = undefined
    }
    const state = show()
    notified = state
    // When a handler closes or reconnects the stream, all handlers are told of that first. The older news is then
    // obsolete.
    void stateHandlers.call(state, () => notified === state)
  }

  function onState(handler: Handler<StreamState>): Off {
    const off = stateHandlers.add(handler)
    let last: unknown = notified
    // In a later turn, so that the caller can remove the handler first. Skipped when a change has already called the
    // handler.
    queueMicrotask(() => last === notified && callHandler(handler, show()))
    return () => {
      last = off
      off()
    }
  }

  function show(): StreamSnapshot {
    flush()
    const fresh: Partial<Record<string, unknown>> = {
      transport: transports[connection.tier],
      events: handlers.latest(),
    }
    for (const field of shownFields) fresh[field] = connection[field]
    for (const field in fresh) {
      if (fresh[field] !== shown?.[field as keyof StreamSnapshot]) shown = fresh as unknown as StreamSnapshot
    }
    return shown!
  }
}

/** The settings for the machine and the handlers, and the parts that were prepared before the first connection. */
export type Policy = Omit<Moment, 'now' | 'isAwaited'> &
  ReadPolicy & { share?: ((own: Transport) => Transport) | undefined }

const defaultTransports: readonly TransportName[] = ['fetch', 'long-poll']

declare const process: { env: { NODE_ENV?: string } }

/** Fallback transports are loaded when they are needed, so that other pages do not pay for them. */
async function loadTransport(name: TransportName | undefined, parts: TransportParts): Promise<Transport> {
  const fallback = name === 'fetch' ? undefined : (await import('./transports/fallbacks.ts'))[name!]
  return (fallback ?? createTransport)(...parts)
}
