import { isIdText, RejoinError } from '@rejoin/protocol'
import { resolveAddress } from './address.ts'
import { maxTimerMs } from './backoff.ts'
import { systemClock } from './clock.ts'
import { type Input, newConnection, type OpenRequest, type Report, step } from './connection.ts'
import type { EventStream } from './event-stream.ts'
import { fetchTransport } from './fetch-transport.ts'
import { callHandler, createHandlerSet, type Handler } from './handler-set.ts'
import { createHandlers } from './handlers.ts'
import type { ConnectOptions } from './options.ts'
import { createReceivers } from './receiver.ts'
import type { StreamState } from './stream-state.ts'
import { onWake } from './wake.ts'

/**
 * Opens a stream that keeps its place: it reconnects by itself and asks for what it missed.
 *
 * @param url - of the stream; in a page a relative one will do
 * @throws RejoinError `invalid-option`, when the URL or the cursor cannot be used
 */
export function connect<Events extends object = Record<string, unknown>>(
  url: string | URL,
  options: ConnectOptions = {},
): EventStream<Events> {
  const { retryMs = 500, maxRetryMs = 30_000, maxRetries = Infinity, clock = systemClock } = options
  const policy = checkNumbers({ retryMs, maxRetryMs, maxRetries })
  const transport = fetchTransport(resolveAddress(url), options, () => clock.now())

  let connection = newConnection(readCursor(options.from))
  let shown: StreamState | undefined
  let notified: StreamState | undefined
  let controller: AbortController | undefined
  let timer: unknown
  const stateHandlers = createHandlerSet<StreamState>()
  const handlers = createHandlers(options.parse ?? 'json', () => connection.state !== 'closed')
  const receiverFor = createReceivers({ current: () => connection, dispatch, handlers })

  const stopWaking = onWake(() => dispatch({ type: 'wake' }))
  dispatch({ type: 'connect' })

  return {
    get state() {
      return show()
    },
    get cursor() {
      return connection.cursor
    },
    on: (type: string, handler: Handler<never>) => handlers.on(type, handler as Handler<unknown>),
    onSync: handlers.onSync,
    onInvalid: handlers.onInvalid,
    onState(handler) {
      const off = stateHandlers.add(handler)
      void callHandler(handler, show())
      return off
    },
    reconnect: () => dispatch({ type: 'connect' }),
    close: () => dispatch({ type: 'close' }),
  }

  function dispatch(input: Input): void {
    const taken = step(connection, input, { now: clock.now(), random: () => clock.random(), ...policy })
    connection = taken.connection
    for (const effect of taken.effects) {
      if (effect.type === 'abort') controller?.abort()
      else if (effect.type === 'timer') setTimer(effect.at)
      else if (effect.type === 'open') open(connection)
      else notify()
    }
  }

  function setTimer(at: number): void {
    clock.clearTimeout(timer)
    if (at === Infinity) return
    // One that is early is set again.
    timer = clock.setTimeout(() => dispatch({ type: 'timer' }), Math.min(at - clock.now(), maxTimerMs))
  }

  function open(request: OpenRequest): void {
    const { generation } = request
    controller = new AbortController()
    const { signal } = controller
    const sink = { tell, receive: receiverFor(generation) }
    // Not in this turn: a transport asks the user's code for headers, which may speak of the stream that `connect` has
    // yet to return.
    void Promise.resolve()
      .then(() => transport(request, sink, signal))
      .then(
        () => tell({ type: 'ended' }),
        (error: unknown) => tell({ type: 'ended', final: isTooLarge(error) ? 'too-large' : undefined }),
      )

    function tell(report: Report): void {
      dispatch({ type: 'report', generation, report })
    }
  }

  function notify(): void {
    if (connection.state === 'closed') stopWaking()
    const state = show()
    notified = state
    // A handler that closes or reconnects has everybody told of that first; the older news is void then.
    void stateHandlers.call(state, () => notified === state)
  }

  function show(): StreamState {
    const { state, attempt, nextRetryAt, lastEventAt, cursor, closeReason } = connection
    const fresh: StreamState = { state, attempt, nextRetryAt, lastEventAt, cursor, closeReason }
    const fields = Object.keys(fresh) as (keyof StreamState)[]
    if (fields.some((field) => fresh[field] !== shown?.[field])) shown = fresh
    return shown ?? fresh
  }
}

function checkNumbers<Numbers extends Record<string, number>>(numbers: Numbers): Numbers {
  for (const [name, value] of Object.entries(numbers)) {
    if (value >= 0) continue
    throw new RejoinError(`${name} is ${value}. Give a number from 0 up.`, { code: 'invalid-option' })
  }
  return numbers
}

function readCursor(from: string | null = null): string | null {
  if (from === null || isIdText(from)) return from
  throw new RejoinError(
    `Cannot start from ${JSON.stringify(from)}, which is no id. Leave out from, and load the state.`,
    { code: 'invalid-option' },
  )
}

function isTooLarge(error: unknown): boolean {
  return error instanceof RejoinError && error.code === 'too-large'
}
