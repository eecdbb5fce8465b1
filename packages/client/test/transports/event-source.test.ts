import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { createHandlers, offerNews } from '../../src/handlers.ts'
import type { RequestOptions } from '../../src/request.ts'
import { createTransport } from '../../src/transports/event-source.ts'
import { runTransport } from '../support/transport-run.ts'

/** What a browser has, as far as it can be seen from outside; the test plays the network. */
class FakeEventSource extends EventTarget {
  static opened: FakeEventSource[] = []
  readonly url: URL
  readonly withCredentials: boolean
  readyState = 0
  onopen: ((event: Event) => void) | null = null
  onerror: ((event: Event) => void) | null = null

  constructor(url: URL, { withCredentials = false } = {}) {
    super()
    this.url = url
    this.withCredentials = withCredentials
    FakeEventSource.opened.push(this)
  }

  send(type: string, data: string, lastEventId: string): void {
    if (this.readyState !== 2) this.dispatchEvent(new MessageEvent(type, { data, lastEventId }))
  }

  close(): void {
    this.readyState = 2
  }
}

beforeEach(() => {
  FakeEventSource.opened = []
  vi.stubGlobal('EventSource', FakeEventSource)
})
afterEach(() => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

function open(cursor: string | null, types: string[] = ['message'], receive?: () => Promise<void> | undefined) {
  const handlers = createHandlers({ keep: 0 }, () => true)
  const handle = (type: string) => handlers.on(type, () => undefined)
  for (const type of types) handle(type)
  const transport = transportWith({}, handlers)
  const run = runTransport(transport, { cursor, ...(receive ? { receive } : {}) })
  return { run, source: FakeEventSource.opened[0] as FakeEventSource, handle }
}

function transportWith(options: RequestOptions, handlers = createHandlers({ keep: 0 }, () => true)) {
  return createTransport(new URL('http://hub/events/a'), options, systemClock, handlers)
}

describe('the browser’s own EventSource', () => {
  test('is given the cursor in the query, and asks for heartbeats that it can see (§3.1, §4.7)', () => {
    expect(open('7').source.url.href).toBe('http://hub/events/a?clientId=me&attempt=1&heartbeat=event&lastEventId=7')
  })

  test.each([
    ['include', true],
    ['same-origin', false],
    ['omit', false],
  ] as const)('takes cookies to another origin only when asked to: %s', (credentials, isTaken) => {
    void runTransport(transportWith({ credentials }))
    expect(FakeEventSource.opened.map(({ withCredentials }) => withCredentials)).toEqual([isTaken])
  })

  test('tells when it is open, and of every event as life', () => {
    const { run, source } = open(null)
    source.onopen?.(new Event('open'))
    source.send('hello', '{}', '1')
    expect(run.reports).toEqual([{ type: 'answered', status: 200, isStream: true, retryAfterMs: 0 }, { type: 'bytes' }])
  })

  test('brings the protocol’s events, and those of types with a handler, also of one added later', () => {
    const { run, source, handle } = open(null, ['order'])
    for (const type of ['hello', 'order', 'late']) source.send(type, '1', type)
    handle('late')
    for (const type of ['late', 'sync-required', 'checkpoint', 'heartbeat', 'close']) source.send(type, '2', type)
    expect(run.blocks.map(({ type }) => type)).toEqual([
      ...['hello', 'order', 'late', 'sync-required', 'checkpoint', 'heartbeat', 'close'],
    ])
    expect(run.blocks[1]).toEqual({ type: 'order', data: '1', id: 'order' })
  })

  test('takes no event of the browser for one of the stream', () => {
    const { run, source } = open(null, ['open', 'error'])
    source.dispatchEvent(new Event('open'))
    source.dispatchEvent(new Event('error'))
    expect(run.blocks).toEqual([])
  })

  test.each([
    ['has given up', 2],
    ['would reconnect by itself', 0],
  ])('is closed at its first error, when it %s: the next connection has our own cursor', async (_, readyState) => {
    const { run, source } = open(null)
    source.readyState = readyState
    source.onerror?.(new Event('error'))
    await run.ended
    expect(source.readyState).toBe(2)
  })

  test.each([
    ['the browser gives up, as on any status but 200', 2, false, 3],
    ['it never opened', 0, false, 1],
    ['it was open', 0, true, 0],
  ])('says how much an error speaks against it: %s', async (_, readyState, isAnswered, against) => {
    const { run, source } = open(null)
    if (isAnswered) source.onopen?.(new Event('open'))
    source.readyState = readyState
    source.onerror?.(new Event('error'))
    await run.ended
    expect(run.reports).toContainEqual({ type: 'ended', against })
  })

  test('is closed with the connection', async () => {
    const { run, source } = open(null)
    run.abort()
    await run.ended
    expect(source.readyState).toBe(2)
  })

  test('keeps the order of what arrives while a handler is waited for', async () => {
    let settle = () => {}
    const settled = new Promise<void>((resolve) => {
      settle = resolve
    })
    let count = 0
    const { run, source } = open(null, ['message'], () => (++count === 1 ? settled : undefined))
    for (const id of ['1', '2', '3']) source.send('message', id, id)
    expect(run.blocks).toHaveLength(1)
    settle()
    await run.waitFor(() => run.blocks.length === 3)
    expect(run.blocks.map(({ id }) => id)).toEqual(['1', '2', '3'])
  })

  test('is closed when more arrives than can be kept for a handler that takes its time', async () => {
    const { run, source } = open(null, ['message'], () => new Promise(() => {}))
    for (let n = 0; n < 1100; n += 1) source.send('message', String(n), String(n))
    await run.ended
    expect(source.readyState).toBe(2)
  })

  test.each<[string, RequestOptions, string[]]>([
    ['send a token', { token: 'secret' }, []],
    ['send headers', { headers: { 'X-Shop': 'one' } }, []],
    ['see every type that a handler asks for', {}, ['*']],
    ['see every type that a loop asks for', {}, [offerNews]],
  ])('is not used where it could not %s, and says so', async (_, options, kinds) => {
    const shown = vi.spyOn(console, 'error').mockReturnValue()
    const handlers = createHandlers({ keep: 0 }, () => true)
    for (const kind of kinds) handlers.on(kind, () => undefined)
    const run = runTransport(transportWith(options, handlers))
    expect(run.reports).toEqual([{ type: 'unusable' }])
    expect(FakeEventSource.opened.filter(({ readyState }) => readyState !== 2)).toEqual([])
    expect(shown).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: 'invalid-option' }))
  })

  test('is not used where there is none, and says so', () => {
    vi.stubGlobal('EventSource', undefined)
    const shown = vi.spyOn(console, 'error').mockReturnValue()
    expect(runTransport(transportWith({})).reports).toEqual([{ type: 'unusable' }])
    expect(shown).toHaveBeenCalledOnce()
  })

  test('is given up as soon as somebody asks for every type', async () => {
    const shown = vi.spyOn(console, 'error').mockReturnValue()
    const { run, source, handle } = open(null)
    source.onopen?.(new Event('open'))
    handle('*')
    await run.ended
    expect(run.reports.at(-1)).toEqual({ type: 'unusable' })
    expect(source.readyState).toBe(2)
    handle(offerNews)
    expect(shown).toHaveBeenCalledOnce()
  })
})
