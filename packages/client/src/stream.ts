import { resolveAddress } from './address.ts'
import { maxTimerMs } from './backoff.ts'
import { systemClock } from './clock.ts'
import { type Input, isOpen, newConnection, type Report, shownFields, step } from './connection.ts'
import type { AnyEvent, EventStream, OtherTypes, StreamSnapshot } from './event-stream.ts'
import { createTransport } from './fetch-transport.ts'
import { callHandler, createHandlerSet, type Handler, type Off } from './handler-set.ts'
import { createHandlers, duplicateNews, invalidNews, syncNews } from './handlers.ts'
import { invalidOption } from './invalid-option.ts'
import { iterate } from './iteration.ts'
import type { ConnectOptions } from './options.ts'
import { createReceivers } from './receiver.ts'
import { report } from './report.ts'
import { isCursor, userHeaders } from './request.ts'
import type { EventsOf, Schemas } from './schema.ts'
import type { StreamState, TransportName } from './stream-state.ts'
import type { Transport, TransportParts } from './transport.ts'
import { isHidden, onWake } from './wake.ts'

/**
 * Opens a stream that keeps its place: it reconnects by itself and asks for what it missed.
 *
 * @param url - of the stream; in a page a relative one will do
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
  const { clock = systemClock, from = null, persist, pauseWhenHidden, reports } = options
  const { transports = ['fetch', 'long-poll'] } = options
  const numbers = { retryMs: 500, maxRetryMs: 30_000, maxRetries: Infinity, keep: 100 }
  for (const key in numbers) {
    const name = key as keyof typeof numbers
    numbers[name] = options[name] ?? numbers[name]
    if (!(numbers[name] >= 0)) throw invalidOption(`${name} is ${numbers[name]}. Give 0 or more.`)
  }
  if (from !== null && !isCursor(from)) throw invalidOption(`from is ${from}. Give an id.`)
  const address = resolveAddress(url)
  const policy = {
    ...options,
    ...numbers,
    rungs: transports.length,
    canRefresh: [options.headers, options.token].some((given) => typeof given === 'function'),
    // A worker, or Node, is not told that it was frozen or asleep: a tick that is late tells it.
    tickMs: globalThis.document ? Infinity : 1000,
    random: () => clock.random(),
  }

  let connection = newConnection(from, `${Math.random()}`)
  let begun = false
  // The connection whose last events the machine has yet to hear of, and the place that they lead to. A step per event
  // would be the dearest part of a small one, so that those of a chunk share one: nobody can see the difference.
  let pending = 0
  let pendingId: string | null = null
  let shown: StreamSnapshot | undefined
  let heard: StreamSnapshot | undefined
  let notified: StreamState | undefined
  const life = new AbortController()
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
      // Who looks at the last events looks at those of all types.
      if (numbers.keep) handlers.on('*', () => undefined)()
      return listeners.add(listener)
    },
    getSnapshot: show as () => StreamSnapshot<Events>,
    iterate: (given) => iterate(handlers.on, onState, given?.signal) as AsyncGenerator<AnyEvent<Events>, void>,
    [Symbol.asyncIterator]: () => stream.iterate(),
    reconnect: () => dispatch({ type: 'connect' }),
    close: () => dispatch({ type: 'close' }),
  }

  onWake((type) => dispatch({ type }), pauseWhenHidden, life.signal)
  if (reports) {
    void import('./reconnect-reports.ts')
      .then((it) => it.reportReconnects(onState, address, reports, clock))
      .catch(report)
  }
  if (persist) {
    const load = () => import('./persistence.ts')
    void load()
      // Once more: with a network that fails now and then, the cursor would be forgotten.
      .catch(load)
      .then((it) => it.persistCursor(persist, `rejoin:${address}`, show, listeners.add, handlers.on))
      .catch(report)
      .then(begin as (found: unknown) => void)
  } else begin(null)
  return stream

  function begin(found: string | null | undefined): void {
    begun = true
    // Where the store cannot say what was there, a cursor that no hub knows has it tell what may be gone (§4.6).
    connection = { ...connection, cursor: found ?? from ?? (found === null ? found : 'lost') }
    dispatch({ type: pauseWhenHidden && isHidden() ? 'hide' : 'connect' })
  }

  function dispatch(input: Input, generation?: number): void {
    // Before its store has answered, a stream does not know where to start.
    if (!begun && input.type !== 'close') return
    flush()
    const taken = step(connection, input, { now: clock.now(), ...policy }, generation)
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
    if (!pending) return
    const generation = pending
    const id = pendingId
    pending = 0
    pendingId = null
    dispatch({ type: 'event', id }, generation)
    // So that no more events stay here than are to be shown.
    show()
  }

  function synced(id: string | null, isCurrent: boolean): void {
    // Channels that were new to the cursor have been told of, which the hub would do again for every connection (§3.3).
    address.searchParams.delete('added')
    if (isCurrent) return
    // What the user has loaded reaches up to here. A connection that was made meanwhile asked for what came before it,
    // would tell of the same gap, and so on for ever if that is where the user reconnects.
    dispatch({ type: 'id', id })
    if (isOpen(connection)) dispatch({ type: 'connect' })
  }

  function setTimer(): void {
    clock.clearTimeout(timer)
    const waitMs = connection.timerAt - clock.now()
    // One that is early is set again.
    if (waitMs < Infinity) timer = clock.setTimeout(() => dispatch({ type: 'timer' }), Math.min(waitMs, maxTimerMs))
  }

  function open(): void {
    const request = connection
    const { generation } = request
    controller = new AbortController()
    const { signal } = controller
    const sink = { tell, receive: receiverFor(generation) }
    // Not in this turn: a transport asks the user's code for headers, which may speak of the stream that `connect` has
    // yet to return.
    void loadTransport(transports[request.rung], parts)
      .then<unknown, unknown>(
        // Who reconnected or closed meanwhile has no use for it.
        (transport) => signal.aborted || transport(request, sink, signal),
        // Its code may be gone for good, as after a deployment, and another is better than none.
        () => transports[1] && tell({ type: 'unusable' }),
      )
      // A failure is told like an end: what it was is on the console of whoever looks.
      .catch(() => undefined)
      .then(() => tell({ type: 'ended' }))

    function tell(report: Report): void {
      dispatch(report, generation)
    }
  }

  function renew(): void {
    const { generation } = connection
    userHeaders(options, { refresh: true, signal: controller.signal }).then(
      (headers) => dispatch({ type: 'renewed', headers }, generation),
      // It was reported. The stream goes on until the hub ends it, and then they are asked for again.
      () => undefined,
    )
  }

  function notify(): void {
    if (connection.state === 'closed') life.abort()
    const state = show()
    notified = state
    // A handler that closes or reconnects has everybody told of that first; the older news is void then.
    void stateHandlers.call(state, () => notified === state)
  }

  function onState(handler: Handler<StreamState>): Off {
    const off = stateHandlers.add(handler)
    let last: unknown = notified
    // Not in this turn, in which the handler could not be taken off; and not when a change has told it already.
    queueMicrotask(() => last === notified && callHandler(handler, show()))
    return () => {
      last = off
      off()
    }
  }

  function show(): StreamSnapshot {
    flush()
    const fresh: Partial<Record<string, unknown>> = {
      transport: transports[connection.rung],
      events: handlers.latest(),
    }
    for (const field of shownFields) fresh[field] = connection[field]
    for (const field in fresh) {
      if (fresh[field] !== shown?.[field as keyof StreamSnapshot]) shown = fresh as unknown as StreamSnapshot
    }
    return shown!
  }
}

/** What is a fallback comes when it is needed, so that who never needs it does not pay for it. */
async function loadTransport(name: TransportName | undefined, parts: TransportParts): Promise<Transport> {
  const part =
    name === 'event-source'
      ? await import('./event-source-transport.ts')
      : name === 'long-poll'
        ? await import('./long-poll-transport.ts')
        : { createTransport }
  return part.createTransport(...parts)
}
