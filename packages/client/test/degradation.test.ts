import { expect, onTestFinished, test, vi } from 'vitest'
import { type ConnectOptions, connect, type EventStream } from '../src/index.ts'
import { hello, message } from './support/scripted-server.ts'
import { clock, opened, retried, server, start, stateOf, useStage } from './support/stage.ts'

useStage()

test('a stream that a proxy holds back is polled instead, from the same cursor', async () => {
  const { stream, events } = start({ from: 'e1' })
  for (let attempt = 0; attempt < 2; attempt++) {
    await server.heldBack()
    expect(stream.state.state).toBe('connecting')
    clock.advance(30_000)
    await retried(stream)
  }
  const poll = await server.visit()
  expect(poll.url.searchParams.get('waitMs')).toBe('0')
  expect(poll.url.searchParams.get('lastEventId')).toBe('e1')
  expect(stream.state.transport).toBe('long-poll')
  poll.answer(200, { 'content-type': 'application/json' })
  const greeting = JSON.stringify({ resumed: true, requested: 'e1', heartbeatMs: 25_000, connection: 'c_1' })
  const found = [
    { id: 'e1', type: 'hello', data: greeting },
    { id: 'e2', type: 'message', data: '"e2"' },
  ]
  poll.write(JSON.stringify({ events: found, cursor: 'e2', retryMs: 2000 }))
  poll.end()
  expect(await events.until(1)).toEqual(['e2'])
  expect((await server.visit()).url.searchParams.get('lastEventId')).toBe('e2')
  expect(stream.state).toMatchObject({ state: 'connected', cursor: 'e2' })
})

test('a server that cannot be polled is streamed from again', async () => {
  const { stream, events } = start()
  for (let attempt = 0; attempt < 3; attempt++) {
    const visit = await server.stream()
    await stateOf(stream, 'connected')
    visit.cut()
    await retried(stream)
  }
  const poll = await server.visit()
  expect(poll.url.searchParams.get('waitMs')).toBe('0')
  poll.answer(404)
  poll.end()
  await retried(stream)
  const visit = await server.stream()
  expect(visit.url.searchParams.has('waitMs')).toBe(false)
  visit.send(...hello({}, 'e0'))
  visit.send(...message('e1'))
  expect(await events.until(1)).toEqual(['e1'])
})

test.each([
  [['fetch', 'long-poll'] as const, null],
  [['long-poll'] as const, '0'],
])(
  'of %j, a transport whose code is out of reach is no end, and another is used meanwhile',
  async (transports, waitMs) => {
    const bringBack = await putOutOfReach('../src/transports/fallbacks.ts')
    const { stream } = start({ transports })
    for (let attempt = 0; attempt < 3 && transports[0] === 'fetch'; attempt++) {
      const visit = await server.stream()
      await stateOf(stream, 'connected')
      visit.cut()
      await retried(stream)
    }
    await stateOf(stream, 'backoff')
    await bringBack()
    await retried(stream)
    expect((await server.visit()).url.searchParams.get('waitMs')).toBe(waitMs)
  },
)

test('a rejection is an end, also when the code that reads its words is out of reach', async () => {
  await putOutOfReach('../src/rejection.ts')
  const { stream } = start()
  const visit = await server.visit()
  visit.answer(403, { 'content-type': 'application/json' })
  visit.write('{"error":{"code":"forbidden","message":"No."}}')
  visit.end()
  expect(await stateOf(stream, 'closed')).toMatchObject({ closeReason: 'http-403', closeMessage: null })
})

test('a poll with an answer that no hub would give is tried again, after a wait like any other', async () => {
  const { stream } = start({ from: 'e1', transports: ['long-poll'] })
  for (const body of ['{}', '{"events":[],"cursor":null,"retryMs":"soon"}', 'null', '{"events":[{}]}']) {
    const poll = await server.visit()
    poll.answer(200, { 'content-type': 'application/json' })
    poll.write(body)
    poll.end()
    if (body.includes('retryMs')) (await server.visit()).cut()
    expect(stream.cursor).toBe('e1')
    expect((await stateOf(stream, 'backoff')).nextRetryAt).toBeGreaterThan(clock.now())
    await retried(stream)
  }
})

test('a poll that is cut keeps the events that were whole in it, and the next poll goes on after them', async () => {
  const { stream, events } = start({ from: 'e1', transports: ['long-poll'] })
  const poll = await server.visit()
  poll.answer(200, { 'content-type': 'application/json' })
  const greeting = JSON.stringify({ resumed: true, requested: 'e1', heartbeatMs: 25_000, connection: 'c_1' })
  const frames = [
    { id: 'e1', type: 'hello', data: greeting },
    { id: 'e2', type: 'message', data: '"e2"' },
    { id: 'e3', type: 'message', data: '"e3"' },
  ]
  poll.write(JSON.stringify({ events: frames }).slice(0, -10))
  expect(await events.until(1)).toEqual(['e2'])
  poll.cut()
  await retried(stream)
  expect((await server.visit()).url.searchParams.get('lastEventId')).toBe('e2')
})

test('a stream that is told to reconnect again and again asks once, and leaves nothing open', async () => {
  const { made, closed, stream } = startNative()
  for (let time = 0; time < 50; time++) stream.reconnect()
  await expect.poll(() => made).toHaveBeenCalled()
  expect(made).toHaveBeenCalledOnce()
  stream.close()
  expect(closed).toHaveBeenCalledOnce()
})

test('a user who wants one transport gets no other', async () => {
  const { stream } = start({ transports: ['fetch'] })
  for (let attempt = 0; attempt < 5; attempt++) {
    const visit = await server.stream()
    expect(visit.url.searchParams.has('waitMs')).toBe(false)
    await stateOf(stream, 'connected')
    visit.cut()
    await retried(stream)
  }
})

test.each<[string, (stream: EventStream) => unknown]>([
  ['a handler for all types', (stream) => stream.on('*', () => undefined)],
  ['a loop', (stream) => stream[Symbol.asyncIterator]().next()],
  ['a view of the last events', (stream) => stream.subscribe(() => undefined)],
])('%s never gets less because of the transport: where types have to be named, another is used', async (_, ask) => {
  const { report, stream } = startNative()
  void ask(stream)
  await retried(stream)
  expect((await server.visit()).url.searchParams.get('waitMs')).toBe('0')
  expect(report).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: 'invalid-option' }))
})

test('a view of the state alone goes with any transport', async () => {
  const { made, report, stream } = startNative({ keep: 0, persist: { load: () => null, save: () => undefined } })
  stream.subscribe(() => undefined)
  await stateOf(stream, 'connecting')
  await expect.poll(() => made).toHaveBeenCalled()
  expect(report).not.toHaveBeenCalled()
})

test('a stream whose only transport cannot be used is closed, and says why', async () => {
  const report = vi.spyOn(console, 'error').mockReturnValue()
  vi.stubGlobal('EventSource', undefined)
  const { stream } = start({ transports: ['event-source'] })
  expect((await stateOf(stream, 'closed')).closeReason).toBe('no-transport')
  expect(report).toHaveBeenCalledOnce()
})

/** A stream that starts with an `EventSource`, on which nothing ever happens. */
function startNative(options: ConnectOptions = {}) {
  const report = vi.spyOn(console, 'error').mockReturnValue()
  const made = vi.fn()
  const closed = vi.fn()
  class Silent extends EventTarget {
    constructor() {
      super()
      made()
    }
    close() {
      closed()
    }
  }
  vi.stubGlobal('EventSource', Silent)
  const stream = connect(server.url, { clock, transports: ['event-source', 'long-poll'], ...options })
  opened.push(stream)
  return { report, made, closed, stream }
}

/**
 * Lets every import of a module fail, until the test is over or the returned function is called. Both wait until no import is under
 * way: Vitest forgets a mock that comes in the midst of one.
 */
async function putOutOfReach(module: string): Promise<() => Promise<void>> {
  await vi.dynamicImportSettled()
  vi.doMock(module, () => {
    throw new Error('404')
  })
  const bringBack = async () => {
    await vi.dynamicImportSettled()
    vi.doUnmock(module)
  }
  onTestFinished(bringBack)
  return bringBack
}
