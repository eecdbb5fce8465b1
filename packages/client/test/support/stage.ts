import { afterEach, beforeEach, expect, vi } from 'vitest'
import { closeStreams } from '../../src/bindings/shared-streams.ts'
import { type ConnectOptions, connect, type EventStream, type StreamState } from '../../src/index.ts'
import { type FakeClock, fakeClock } from './fake-clock.ts'
import { type ScriptedServer, scriptedServer } from './scripted-server.ts'

// Each test has a server of its own, a clock that stands still, and streams that are closed at its end.
export let server: ScriptedServer
export let clock: FakeClock
/** Streams that the end of the test closes. */
export const opened: { close(): void }[] = []

/** Called by each file of tests: files share this module, and what runs before a test is registered for one file only. */
export function useStage(): void {
  beforeEach(async () => {
    server = await scriptedServer()
    clock = fakeClock()
  })

  afterEach(async () => {
    for (const stream of opened.splice(0)) stream.close()
    closeStreams()
    await server.close()
    vi.restoreAllMocks()
    vi.unstubAllGlobals()
  })
}

export function start(options: ConnectOptions = {}) {
  const stream = connect(server.url, { clock, ...options })
  opened.push(stream)
  return { stream, events: recorder(stream) }
}

/** Lets the test be a browser, as far as events go. */
export function page(visibilityState = 'visible') {
  const window = new EventTarget()
  const document = { visibilityState, baseURI: server.url }
  vi.stubGlobal('document', document)
  vi.stubGlobal('addEventListener', window.addEventListener.bind(window))
  return { window, document }
}

/** Keeps what arrives, and waits for the nth of it. */
export function recorder<Events extends object>(stream: EventStream<Events>) {
  const all: { id: string; data: unknown }[] = []
  const waiting = new Set<() => void>()
  stream.on('*', (event) => {
    const { id, data } = event as { id: string; data: unknown }
    all.push({ id, data })
    // After the handlers, when the place has moved too.
    queueMicrotask(() => {
      for (const check of waiting) check()
    })
  })
  const data = () => all.map((event) => event.data)
  return {
    all,
    data,
    async until(count: number): Promise<unknown[]> {
      await new Promise<void>((resolve) => {
        const check = () => {
          if (all.length >= count) resolve()
        }
        waiting.add(check)
        check()
      })
      return data()
    },
  }
}

export function deferred<Value = void>() {
  let resolve!: (value: Value) => void
  const promise = new Promise<Value>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}

export function stateOf(stream: EventStream, wanted: StreamState['state']): Promise<StreamState> {
  return new Promise((resolve) => {
    const off = stream.onState((state) => {
      if (state.state !== wanted) return
      resolve(state)
      queueMicrotask(() => off())
    })
  })
}

/** Waits until the stream waits for a retry, and lets that moment come. */
export async function retried(stream: EventStream): Promise<void> {
  const { nextRetryAt } = await stateOf(stream, 'backoff')
  clock.advance((nextRetryAt ?? 0) - clock.now())
}

/** Waits until the place has moved without an event for the user; every chunk is read in a turn of its own. */
export async function moved(stream: EventStream, cursor: string): Promise<void> {
  await expect.poll(() => stream.cursor, { interval: 5 }).toBe(cursor)
}
