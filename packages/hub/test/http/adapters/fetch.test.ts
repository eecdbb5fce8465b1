import { getRequestListener } from '@hono/node-server'
import { createHub } from '@rejoin/hub'
import { fetchHandler, subscribe } from '@rejoin/hub/fetch'
import { memoryLog } from '@rejoin/hub/memory'
import { describe, expect, test } from 'vitest'
import { parse } from '../../support/recorder.ts'
import { adapterContract, bearer } from './contract.ts'
import { subscribeContract } from './subscribe-contract.ts'

describe('Request and Response', () => {
  adapterContract(
    (hub, { prefix, authorize }) => {
      const handler = fetchHandler(hub, {
        basePath: prefix,
        ...(authorize ? { authorize: ({ headers }) => authorize(bearer(headers.get('Authorization'))) } : {}),
      })
      return getRequestListener((request) => handler(request))
    },
    { hasErrorHandler: false, isApart: true },
  )

  subscribeContract((hub, { wildcardAt, moreAt, channels }) => {
    // As Next.js calls the handler of app/live/[...channel]/route.ts, with the segments as they were matched.
    type Matched = { params: Promise<{ channel: string[] }> }
    const matched = subscribe(hub, {
      channels: async (_request: Request, { params }: Matched) => (await params).channel.join('/'),
    })
    const more = subscribe(hub, {
      channels: async (request: Request, { params }: Matched) => [
        (await params).channel.join('/'),
        ...new URL(request.url).searchParams.getAll('channel'),
      ],
    })
    const fixed = subscribe(hub, { channels })
    return getRequestListener((request) => {
      const { pathname } = new URL(request.url)
      const [path, handler] = pathname.startsWith(`${moreAt}/`) ? [moreAt, more] : [wildcardAt, matched]
      if (!pathname.startsWith(`${path}/`)) return fixed(request)
      const channel = pathname.slice(path.length + 1).split('/')
      return handler(request, { params: Promise.resolve({ channel: channel.map(decodeURIComponent) }) })
    })
  })

  async function openHub(options = {}) {
    const hub = await createHub({ log: memoryLog() })
    return { hub, handler: fetchHandler(hub, options) }
  }

  test('bytes that the reader has not taken wait in the hub, within its budget, and are counted', async () => {
    const { hub, handler } = await openHub({ sinkBudgetBytes: 10_000 })
    const response = await handler(new Request('http://x/events/a'))
    const { reader, greeting } = await startReading(response)
    const numbers = Array.from({ length: 500 }, (_, n) => n)
    for (const n of numbers) {
      await hub.publish('a', { data: n })
      await new Promise(setImmediate)
    }
    let text = greeting
    let taken = 0
    for (; data(text).length < 500; taken += 1) text += new TextDecoder().decode((await reader.read()).value)
    expect(data(text)).toEqual(numbers.map(String))
    // Live, each was a chunk of its own; what came from the log once the budget was spent came in few.
    expect(taken).toBeLessThan(300)
    await reader.cancel()
  })

  test('a reader that cancels the body is gone, and so is one whose request is aborted', async () => {
    const { hub, handler } = await openHub()
    const reasons: string[] = []
    hub.on('close', ({ reason }) => void reasons.push(reason))
    const cancelled = await startReading(await handler(new Request('http://x/events/a')))
    await cancelled.reader.cancel()
    expect(reasons).toEqual(['disconnected'])
    const abort = new AbortController()
    const request = new Request('http://x/events/a', { signal: abort.signal })
    const aborted = await startReading(await handler(request))
    abort.abort()
    expect(reasons).toEqual(['disconnected', 'disconnected'])
    expect(await aborted.reader.read()).toMatchObject({ done: true })
  })

  test('a response that nobody reads is no connection, and takes no room from other readers', async () => {
    const hub = await createHub({ log: memoryLog(), limits: { maxConnections: 1 } })
    const handler = fetchHandler(hub)
    for (let n = 0; n < 10; n += 1) await handler(new Request('http://x/events/a'))
    expect([...hub.admin.connections()]).toEqual([])
    const { greeting } = await startReading(await handler(new Request('http://x/events/a')))
    expect(greeting).toContain('event: hello')
  })

  test('a response that is read only after its request was aborted is empty', async () => {
    const { hub, handler } = await openHub()
    const abort = new AbortController()
    const response = await handler(new Request('http://x/events/a', { signal: abort.signal }))
    abort.abort()
    expect([await response.text(), [...hub.admin.connections()]]).toEqual(['', []])
  })

  test('the address of a reader comes from the arguments that the platform calls the handler with', async () => {
    const hub = await createHub({ log: memoryLog() })
    const handler = fetchHandler(hub, { ip: (_request: Request, info: { address: string }) => info.address })
    const connected = new Promise((resolve) => void hub.on('connect', resolve))
    await startReading(await handler(new Request('http://x/events/a'), { address: '192.0.2.7' }))
    expect(await connected).toMatchObject({ ip: '192.0.2.7' })
  })

  test('an ip function that throws is answered with 500, and the program is told and goes on', async () => {
    const failure = new Error('no such peer')
    const hub = await createHub({ log: memoryLog() })
    const told = new Promise((resolve) => void hub.on('error', ({ cause }) => resolve(cause)))
    const handler = fetchHandler(hub, {
      ip() {
        throw failure
      },
    })
    expect((await handler(new Request('http://x/events/a'))).status).toBe(500)
    expect(await told).toBe(failure)
  })

  test('a handler has two parameters, because Deno passes only as many arguments as it counts', async () => {
    const hub = await createHub({ log: memoryLog() })
    expect([fetchHandler(hub).length, subscribe(hub).length]).toEqual([2, 2])
  })

  test('X-Forwarded-For is believed only with trustProxy', async () => {
    for (const trustProxy of [true, false]) {
      const { hub, handler } = await openHub({ trustProxy })
      const connected = new Promise((resolve) => void hub.on('connect', resolve))
      const headers = { 'X-Forwarded-For': '10.0.0.1, 192.0.2.7' }
      await startReading(await handler(new Request('http://x/events/a', { headers })))
      expect(await connected).toMatchObject({ ip: trustProxy ? '192.0.2.7' : null })
    }
  })

  test('a hub without room rejects the reader in band', async () => {
    const hub = await createHub({ log: memoryLog(), limits: { maxConnections: 1 } })
    const handler = fetchHandler(hub)
    await startReading(await handler(new Request('http://x/events/a')))
    const response = await handler(new Request('http://x/events/a'))
    expect(await response.text()).toMatch(/event: close\ndata: \{"reason":"overloaded"\}\n\n$/)
  })
})

/** As a platform does that sends a response: the reader is connected with the first read. */
async function startReading(
  response: Response,
): Promise<{ reader: ReadableStreamDefaultReader<Uint8Array>; greeting: string }> {
  const reader = response.body?.getReader() as ReadableStreamDefaultReader<Uint8Array>
  return { reader, greeting: new TextDecoder().decode((await reader.read()).value) }
}

function data(text: string): string[] {
  return parse(text)
    .events.filter(({ type }) => type === 'message')
    .map((event) => event.data)
}
