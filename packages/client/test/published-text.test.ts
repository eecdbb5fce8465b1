import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHub, type HubOptions } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { expect, onTestFinished, test, vi } from 'vitest'
import { EventSource } from '../src/event-source.ts'
import { connect, type SyncRequired } from '../src/index.ts'

test.each(['fetch', 'long-poll'] as const)(
  'an event published as text arrives as text by %s, and JSON as its value, without an option (§4.16)',
  async (transport) => {
    const { hub, url } = await serve()
    await hub.publish('a', { text: 'one' })
    await hub.publish('a', { text: '42' })
    await hub.publish('a', { data: '42' })
    await hub.publish('a', { data: { n: 42 } })
    await post(`${url}/publish/a`, '44', 'text/plain')
    await post(`${url}/publish/a`, '{"n":43}', 'application/json')
    await hub.end('a')
    const stream = connect(`${url}/events/a`, { from: 'earliest', transports: [transport] })
    expect(await dataOf(stream)).toEqual(['one', '42', '42', { n: 42 }, '44', { n: 43 }])
  },
)

test('the browser’s own EventSource hides the sign: text that is no JSON arrives all the same', async () => {
  const { hub, url } = await serve()
  vi.stubGlobal('EventSource', EventSource)
  onTestFinished(() => void vi.unstubAllGlobals())
  const stream = connect(`${url}/events/a`, { transports: ['event-source'], from: 'earliest' })
  onTestFinished(stream.close)
  const seen: unknown[] = []
  stream.on('message', ({ data }) => seen.push(data))
  await hub.publish('a', { text: 'one' })
  await hub.publish('a', { data: { n: 1 } })
  await expect.poll(() => seen).toEqual(['one', { n: 1 }])
})

test('a retained value that was published as text arrives as text', async () => {
  const { hub, url } = await serve({ retain: ['a'] })
  await hub.publish('a', { text: '1', key: 'text' })
  await hub.publish('a', { data: 1, key: 'json' })
  const stream = connect(`${url}/events/a`, { from: 'nonsense' })
  onTestFinished(stream.close)
  const gap = await new Promise<SyncRequired>((resolve) => stream.onSync(resolve))
  expect(gap.retained?.map(({ key, data }) => [key, data])).toEqual([
    ['text', '1'],
    ['json', 1],
  ])
})

test('text is held against the schema of its type as text', async () => {
  const { hub, url } = await serve()
  await hub.publish('a', { type: 'note', text: '42' })
  await hub.publish('a', { type: 'note', data: 42 })
  await hub.end('a')
  const isText = { version: 1, vendor: 'test', validate: checkText } as const
  const stream = connect(`${url}/events/a`, { from: 'earliest', schemas: { note: { '~standard': isText } } })
  const invalid: unknown[] = []
  stream.onInvalid(({ data, error }) => invalid.push(data, error))
  expect(await dataOf(stream)).toEqual(['42'])
  expect(invalid).toEqual(['42', [{ message: 'no text' }]])
})

test('data of another server that is no JSON is told of once, with what to do', async () => {
  const warn = vi.spyOn(console, 'warn').mockReturnValue()
  onTestFinished(() => warn.mockRestore())
  const body = 'data: one\n\ndata: two\n\ndata: 3\n\n'
  const stream = connect('http://elsewhere/events', {
    fetch: async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } }),
  })
  for await (const { data } of stream) {
    expect(data).toBe(3)
    stream.close()
  }
  expect(warn).toHaveBeenCalledOnce()
  expect(warn.mock.calls[0]?.join(' ')).toMatch(/JSON.*parse.*onInvalid/)
})

async function dataOf(stream: AsyncIterable<{ data: unknown }>): Promise<unknown[]> {
  const seen: unknown[] = []
  for await (const { data } of stream) seen.push(data)
  return seen
}

async function post(url: string, body: string, type: string): Promise<void> {
  expect((await fetch(url, { method: 'POST', body, headers: { 'Content-Type': type } })).status).toBe(201)
}

function checkText(value: unknown) {
  return typeof value === 'string' ? { value } : { issues: [{ message: 'no text' }] }
}

async function serve(options: Partial<HubOptions> = {}) {
  const hub = await createHub({ log: memoryLog(), ...options })
  const server = createServer(nodeHandler(hub))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    await hub.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { hub, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}
