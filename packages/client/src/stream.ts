import type { EventsOf, Schemas } from '@rejoin/protocol'
import { invalidOption, resolveAddress } from './address.ts'
import { maxTimerMs } from './backoff.ts'
import { systemClock } from './clock.ts'
import { type Input, isOpen, type Moment, newConnection, type Report, shownFields, step } from './connection.ts'
import type { AnyEvent, EventStream, OtherTypes, StreamSnapshot } from './event-stream.ts'
import { callHandler, createHandlerSet, type Handler, type Off, report } from './handler-set.ts'
import { createHandlers, duplicateNews, invalidNews, syncNews } from './handlers.ts'
import { iterate } from './iteration.ts'
import type { ConnectOptions, ReadOptions } from './options.ts'
import { createReceivers } from './receiver.ts'
import { isCursor } from './request.ts'
import type { StreamState, TransportName } from './stream-state.ts'
import { createTransport } from './transports/fetch.ts'
import type { Transport, TransportParts } from './transports/transport.ts'
import { isHidden, onWake } from './wake.ts'

/**
 * Opens a stream that keeps its cursor: it reconnects by itself and asks for what it missed.
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
  const {
    clock = systemClock,
    from = null,
    persist,
    pauseWhenHidden,
    reports,
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
    tiers: transports.length,
    canRefresh: [options.headers, options.token].some((given) => typeof given === 'function'),
    // A worker, or Node, is not told that it was frozen or asleep: a tick that is late tells it.
    tickMs: globalThis.document ? Infinity : 1000,
    random: () => clock.random(),
  }

  let connection = newConnection(from, `${Math.random()}`)
  let begun: boolean | undefined
  // The connection whose last events the machine has yet to hear of, and the cursor that they lead to. A step per event
  // would be the dearest part of a small one, so that those of a chunk share one: nobody can see the difference.
  let pending = 0
  let pendingId: string | null = null
  let shown: StreamSnapshot | undefined
  let heard: StreamSnapshot | undefined
  let notified: StreamState | undefined
  // Ends what is listened to while the stream is not closed.
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
      // Who looks at the last events looks at those of all types.
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
    // Bundlers replace the expression. A page without a bundler has no `process`, and counts as production.
  }
  if (persist || backoff || shareAcrossTabs || reports) {
    void optional()
      // Once more: with a network that fails now and then, the cursor would be forgotten.
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
    const generation = pending
    const id = pendingId
    pending = 0
    pendingId = null
    if (!generation) return
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
    if (!life) listen()
    const tell = (report: Report) => dispatch(report, generation)
    const sink = { tell, receive: receiverFor(generation) }
    // Not in this turn: a transport asks the user's code for headers, which may speak of the stream that `connect` has
    // yet to return.
    void loadTransport(transports[request.tier], parts)
      .then<unknown, unknown>(
        // Who reconnected or closed meanwhile has no use for it.
        (transport) => signal.aborted || (policy.share?.(transport) ?? transport)(request, sink, signal),
        // Its code may be gone for good, as after a deployment, and another is better than none.
        () => transports[1] && tell({ type: 'unusable' }),
      )
      // A failure is told like an end: what it was is on the console of whoever looks.
      .catch(() => undefined)
      .then(() => tell({ type: 'ended' }))
  }

  function renew(): void {
    const { generation } = connection
    const { signal } = controller
    void optional()
      .then((it) => it.userHeaders(options, { refresh: true, signal }))
      .then(
        (headers) => dispatch({ type: 'renewed', headers }, generation),
        // It was reported. The stream goes on until the hub ends it, and then they are asked for again.
        () => undefined,
      )
  }

  function notify(): void {
    if (connection.state === 'closed') {
      life?.abort()
      life = undefined
    }
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

/** What the steps of the machine and the handlers go by, and what was prepared before the first connection. */
export type Policy = Omit<Moment, 'now'> &
  ReadOptions & { keep: number; share?: ((own: Transport) => Transport) | undefined }

const defaultTransports: readonly TransportName[] = ['fetch', 'long-poll']

function optional(): Promise<typeof import('./optional.ts')> {
  return import('./optional.ts')
}

declare const process: { env: { NODE_ENV?: string } }

/** What is a fallback comes when it is needed, so that who never needs it does not pay for it. */
async function loadTransport(name: TransportName | undefined, parts: TransportParts): Promise<Transport> {
  const fallback = name === 'fetch' ? undefined : (await import('./transports/fallbacks.ts'))[name!]
  return (fallback ?? createTransport)(...parts)
}
