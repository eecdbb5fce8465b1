import { EventSource, type EventSourceOptions } from '@rejoin/client/event-source'
import { expect, expectTypeOf, onTestFinished, test } from 'vitest'
import { type ScriptedServer, scriptedServer } from './support/scripted-server.ts'

// The rules of the standard are played in test/browser/event-source.test.ts, in Node and in Chromium.

async function server(): Promise<ScriptedServer> {
  const opened = await scriptedServer()
  onTestFinished(() => opened.close())
  return opened
}

function sourceOf(url: string, options?: EventSourceOptions): EventSource {
  const source = new EventSource(url, options)
  onTestFinished(() => source.close())
  return source
}

const next = (source: EventSource, type: string) =>
  new Promise<MessageEvent<string>>((resolve) => source.addEventListener(type, resolve, { once: true }))

test('our EventSource fits where the browser’s own class is expected', () => {
  expectTypeOf<EventSource>().toExtend<globalThis.EventSource>()
  expectTypeOf<typeof EventSource>().toExtend<new (url: string, init?: EventSourceInit) => globalThis.EventSource>()
})

test('an initial cursor goes with the first request, and is what events without an id carry', async () => {
  const hub = await server()
  const source = sourceOf(hub.url, { lastEventId: '41' })
  const visit = await hub.stream()
  expect(visit.headers['last-event-id']).toBe('41')
  visit.send('data: a')
  expect(await next(source, 'message')).toMatchObject({ data: 'a', lastEventId: '41' })
})

test('headers are sent with every request, and a function is asked each time', async () => {
  const hub = await server()
  let asked = 0
  sourceOf(hub.url, { headers: async () => ({ authorization: `Bearer ${++asked}`, accept: 'text/event-stream, */*' }) })
  const first = await hub.stream()
  expect([first.headers.authorization, first.headers.accept]).toEqual(['Bearer 1', 'text/event-stream, */*'])
  first.send('retry: 1', 'id: 7', 'data: a')
  first.end()
  const second = await hub.stream()
  expect([second.headers.authorization, second.headers['last-event-id']]).toEqual(['Bearer 2', '7'])
})

test('a function for headers that fails once is asked again after the wait', async () => {
  const hub = await server()
  let asked = 0
  const source = sourceOf(hub.url, {
    headers: () => {
      asked += 1
      if (asked === 2) throw new Error('no token now')
      return {}
    },
  })
  const first = await hub.stream()
  first.send('retry: 1', 'data: a')
  first.end()
  await next(source, 'error')
  await hub.stream()
  expect([asked, source.readyState]).toEqual([3, 0])
})

test('every request asks caches to stay out of the way', async () => {
  const hub = await server()
  sourceOf(hub.url)
  const { headers } = await hub.visit()
  expect([headers.accept, headers['cache-control'], headers['last-event-id']]).toEqual([
    ...['text/event-stream', 'no-cache', undefined],
  ])
})

test('an id with control characters is not sent, and the stream goes on', async () => {
  const hub = await server()
  const source = sourceOf(hub.url)
  const first = await hub.stream()
  first.send('retry: 1', 'id: a\x01b', 'data: a')
  expect((await next(source, 'message')).lastEventId).toBe('a\x01b')
  first.end()
  expect((await hub.stream()).headers['last-event-id']).toBeUndefined()
})

test('an event of more than 16 million characters ends it instead of filling the memory', async () => {
  const hub = await server()
  const source = sourceOf(hub.url)
  const visit = await hub.stream()
  visit.write('data: ')
  for (let megabytes = 0; megabytes < 17; megabytes += 1) visit.write('x'.repeat(1_000_000))
  await next(source, 'error')
  expect(source.readyState).toBe(2)
  await visit.gone
})

test('close() ends the connection, also with a fetch that ignores its signal', async () => {
  const hub = await server()
  const source = sourceOf(hub.url, { fetch: (url, { signal: _, ...init }) => fetch(url, init) })
  const visit = await hub.stream()
  await next(source, 'open')
  source.close()
  await visit.gone
  expect(source.readyState).toBe(2)
})

test('close() before the answer leads to no event', async () => {
  const hub = await server()
  const source = sourceOf(hub.url)
  const told: string[] = []
  for (const type of ['open', 'message', 'error']) source.addEventListener(type, () => told.push(type))
  const visit = await hub.visit()
  source.close()
  await visit.gone
  expect(told).toEqual([])
})

test('an answer that closes the EventSource is not left open', async () => {
  const hub = await server()
  const source = sourceOf(hub.url)
  const visit = await hub.visit()
  visit.answer(503)
  visit.write('sorry')
  await next(source, 'error')
  await visit.gone
  expect(source.readyState).toBe(2)
})

test('a request that the network fails is tried again, with the cursor', async () => {
  const hub = await server()
  let tries = 0
  const source = sourceOf(hub.url, {
    fetch: (url, init) => (++tries === 2 ? Promise.reject(new TypeError('fetch failed')) : fetch(url, init)),
  })
  const first = await hub.stream()
  first.send('retry: 1', 'id: 7', 'data: a')
  await next(source, 'message')
  first.cut()
  expect((await hub.stream()).headers['last-event-id']).toBe('7')
  await next(source, 'open')
  expect([tries, source.readyState]).toEqual([3, 1])
})

test('a relative address where there is no page is a SyntaxError that says what to give', () => {
  expect(() => new EventSource('/events/a')).toThrow(
    expect.objectContaining({ name: 'SyntaxError', message: expect.stringContaining('Give a whole URL') }),
  )
})
