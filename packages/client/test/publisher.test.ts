import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHub, type Hub } from '@rejoin/hub'
import { createSubscription } from '@rejoin/hub/internal'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createPublisher, type PublisherOptions } from '../src/publisher/publisher.ts'
import { type FakeClock, fakeClock } from './support/fake-clock.ts'

type Script = (request: IncomingMessage, response: ServerResponse, attempt: number) => boolean

/** A hub behind a server whose script may answer in its place; returns what arrived. */
async function serve(script: Script = () => false, options: PublisherOptions = {}) {
  const hub = await createHub({ log: memoryLog() })
  const handle = nodeHandler(hub)
  const keys: (string | undefined)[] = []
  const server = createServer((request, response) => {
    keys.push(request.headers['idempotency-key'] as string | undefined)
    if (!script(request, response, keys.length)) handle(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    await hub.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const clock = fakeClock()
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { hub, clock, keys, origin, publisher: createPublisher(`${origin}/publish`, { clock, ...options }) }
}

/** Lets the waits between retries pass, without waiting, until the promise settles. */
async function hurry<Value>(clock: FakeClock, promise: Promise<Value>): Promise<Value> {
  let isSettled = false
  const settled = promise.finally(() => {
    isSettled = true
  })
  settled.catch(() => undefined)
  while (!isSettled) {
    await new Promise((resolve) => setImmediate(resolve))
    // The timer of a request is at 30 s; what is nearer is a wait between two.
    const nearest = Math.min(...clock.timers())
    if (nearest < 30_000) clock.advance(nearest)
  }
  return settled
}

function answer(response: ServerResponse, status: number, headers: Record<string, string> = {}): true {
  response.writeHead(status, headers).end()
  return true
}

async function eventsOf(hub: Hub, channel: string): Promise<string[]> {
  const polled = await hub.port.poll({ subscription: createSubscription([channel]), start: { from: 'earliest' } })
  if ('reason' in polled) throw new Error(polled.reason)
  return polled.events.filter(({ type }) => type !== 'hello' && type !== 'checkpoint').map(({ data }) => data)
}

describe('a publisher', () => {
  test('publishes data, text and types, and gives their ids', async () => {
    const { hub, publisher } = await serve()
    const { id } = await publisher.publish('orders/42', { type: 'shipped', data: { n: 1 } })
    expect(id).toMatch(/^[0-9A-Z]{26}$/)
    await publisher.publish('orders/42', { text: 'as it is' })
    const batch = await publisher.publishBatch([
      { channel: 'orders/42', data: 3 },
      { channel: 'other', data: 4 },
    ])
    expect(batch).toHaveLength(2)
    expect(await eventsOf(hub, 'orders/42')).toEqual(['{"n":1}', 'as it is', '3'])
  })

  test('publishes once when the answer is lost on the way back (§5.5)', async () => {
    const { hub, clock, keys, publisher } = await serve((_request, response, attempt) => {
      // The hub takes the event, and its answer never leaves.
      if (attempt === 1) response.end = () => response.destroy() as never
      return false
    })
    const { id } = await hurry(clock, publisher.publish('a', { data: 1 }))
    expect(await eventsOf(hub, 'a')).toEqual(['1'])
    expect(keys).toHaveLength(2)
    expect(keys[0]).toBe(keys[1])
    expect(id).toMatch(/^[0-9A-Z]{26}$/)
  })

  test('uses another key for another event', async () => {
    const { keys, publisher } = await serve()
    await publisher.publish('a', { data: 1 })
    await publisher.publish('a', { data: 1 })
    expect(new Set(keys).size).toBe(2)
  })

  test.each([408, 425, 429, 500, 502, 503, 504])('tries again after %i', async (status) => {
    const { hub, clock, publisher } = await serve((_request, response, n) => n <= 2 && answer(response, status))
    await hurry(clock, publisher.publish('a', { data: 1 }))
    expect(await eventsOf(hub, 'a')).toEqual(['1'])
  })

  test('gives up after ten minutes, however many tries are left: the hub may have forgotten its key (§5.5)', async () => {
    const timeoutMs = 31_337
    const { clock, keys, publisher } = await serve((_request, response) => answer(response, 503), {
      ...{ timeoutMs, maxRetries: 1000 },
    })
    const started = clock.now()
    let outcome: unknown
    publisher.publish('a', { data: 1 }).catch((error) => {
      outcome = error
    })
    while (outcome === undefined) {
      await new Promise((resolve) => setImmediate(resolve))
      const wait = clock.timers().find((ms) => ms !== timeoutMs)
      if (wait !== undefined) clock.advance(wait)
    }
    expect(outcome).toMatchObject({ retryable: true })
    expect(clock.now() - started).toBeLessThanOrEqual(600_000)
    expect(clock.now() - started).toBeGreaterThan(500_000)
    expect(keys.length).toBeGreaterThan(10)
  })

  test('comes back no sooner than Retry-After', async () => {
    const { clock, publisher } = await serve(
      (_request, response, n) => n === 1 && answer(response, 503, { 'retry-after': '9' }),
    )
    const before = clock.now()
    await hurry(clock, publisher.publish('a', { data: 1 }))
    expect(clock.now() - before).toBeGreaterThanOrEqual(9000)
    expect(clock.now() - before).toBeLessThan(9500)
  })

  test('gives up after maxRetries, and says that the same call may succeed later', async () => {
    const { clock, keys, publisher } = await serve((_request, response) => answer(response, 503), { maxRetries: 3 })
    await expect(hurry(clock, publisher.publish('a', { data: 1 }))).rejects.toMatchObject({
      ...{ name: 'RejoinError', code: 'unreachable', retryable: true },
    })
    expect(keys).toHaveLength(4)
  })

  test('sends again what got no answer in time', async () => {
    const { hub, clock, keys, publisher } = await serve((_request, _response, attempt) => attempt === 1)
    const publishing = publisher.publish('a', { data: 1 })
    while (keys.length === 0) await new Promise((resolve) => setImmediate(resolve))
    clock.advance(30_000)
    await hurry(clock, publishing)
    expect(await eventsOf(hub, 'a')).toEqual(['1'])
  })

  test('rejects with the hub’s own code and words, at once', async () => {
    const { keys, publisher } = await serve()
    await expect(publisher.publish('a//b', { data: 1 })).rejects.toMatchObject({
      ...{ name: 'RejoinError', code: 'invalid-channel', retryable: false },
      message: expect.stringContaining('a//b'),
    })
    await expect(publisher.publish('a', { type: 'hello', data: 1 })).rejects.toMatchObject({ code: 'invalid-type' })
    expect(keys).toHaveLength(2)
  })

  test('rejects the same key for another event (§5.5)', async () => {
    const { publisher } = await serve()
    await publisher.publish('a', { data: 1 }, { idempotencyKey: 'order-1' })
    const again = publisher.publish('a', { data: 2 }, { idempotencyKey: 'order-1' })
    await expect(again).rejects.toMatchObject({ code: 'key-reused' })
  })

  test('says so when something else than a hub answers', async () => {
    const { publisher, origin } = await serve((_request, response) => answer(response, 404))
    await expect(publisher.publish('a', { data: 1 })).rejects.toMatchObject({
      ...{ code: 'unreachable', retryable: false, message: expect.stringContaining(`${origin}/publish`) },
    })
  })

  test.each(['{}', 'null', '[]', '{"events":1}'])(
    'takes %s with status 200 for no answer, and sends again',
    async (text) => {
      const { publisher, clock, keys } = await serve((_, response, attempt) => attempt === 1 && !!response.end(text))
      expect(await hurry(clock, publisher.publish('news', { data: 1 }))).toMatchObject({ id: expect.any(String) })
      expect(new Set(keys).size).toBe(1)
      expect(keys).toHaveLength(2)
    },
  )

  test('finds /publish of a hub by its origin', async () => {
    const { hub, origin } = await serve()
    for (const url of [origin, `${origin}/`, new URL(origin)]) await createPublisher(url).publish('a', { data: 1 })
    expect(await hub.admin.window('a')).toMatchObject({ events: 3 })
    await expect(createPublisher(`${origin}/api`).publish('a', { data: 1 })).rejects.toMatchObject({
      code: 'not-found',
    })
  })

  test('passes on what a newer hub says, and takes no other service for a hub', async () => {
    const codes = ['not-known-here', 'NOT_FOUND', 404, undefined]
    const { publisher } = await serve((_request, response, attempt) => {
      response.writeHead(404, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ error: { code: codes[attempt - 1], message: 'its words' } }))
      return true
    })
    const publish = () => publisher.publish('a', { data: 1 })
    await expect(publish()).rejects.toMatchObject({ code: 'not-known-here', message: 'its words' })
    for (const _other of codes.slice(1)) await expect(publish()).rejects.toMatchObject({ code: 'unreachable' })
  })

  test('rejects data that JSON does not have, and sends nothing', async () => {
    const { publisher, keys } = await serve()
    const rejection = { name: 'RejoinError', code: 'invalid-data', message: expect.stringMatching(/BigInt as text/) }
    await expect(publisher.publish('a', { data: { sum: 12n } })).rejects.toMatchObject(rejection)
    expect(keys).toEqual([])
  })

  test('follows no redirect: its events and its token are for this server', async () => {
    const { keys, publisher } = await serve((_request, response) => answer(response, 307, { location: '/elsewhere' }))
    await expect(publisher.publish('a', { data: 1 })).rejects.toMatchObject({ code: 'unreachable', retryable: false })
    expect(keys).toHaveLength(1)
  })

  test('asks once more for a token that was rejected, at once', async () => {
    const asked: boolean[] = []
    const token = ({ refresh }: { refresh: boolean }) => {
      asked.push(refresh)
      return refresh ? 'new' : 'old'
    }
    const rejectOld: Script = ({ headers }, response) => headers.authorization !== 'Bearer new' && answer(response, 401)
    const { hub, publisher } = await serve(rejectOld, { token })
    await publisher.publish('a', { data: 1 })
    expect(asked).toEqual([false, true])
    expect(await eventsOf(hub, 'a')).toEqual(['1'])
  })

  test('does not ask for ever', async () => {
    const { keys, publisher } = await serve((_request, response) => answer(response, 401), { token: () => 'old' })
    await expect(publisher.publish('a', { data: 1 })).rejects.toMatchObject({ retryable: false })
    expect(keys).toHaveLength(2)
  })

  test('stops when it is told to, during a request and between two', async () => {
    const { clock, keys, publisher } = await serve((_request, response, n) => n === 1 || answer(response, 503))
    const during = new AbortController()
    const first = publisher.publish('a', { data: 1 }, { signal: during.signal })
    while (keys.length < 1) await new Promise((resolve) => setImmediate(resolve))
    during.abort()
    await expect(first).rejects.toMatchObject({ name: 'AbortError' })

    const between = new AbortController()
    const second = publisher.publish('a', { data: 1 }, { signal: between.signal })
    while (!clock.timers().some((ms) => ms < 30_000)) await new Promise((resolve) => setImmediate(resolve))
    between.abort(new Error('changed my mind'))
    await expect(second).rejects.toThrow('changed my mind')
    expect(clock.timers()).toEqual([])
    expect(keys).toHaveLength(2)
  })
  test('stops when it is told to, and goes on in time, while a token does not come', async () => {
    let asked = 0
    const token = () => (++asked === 1 ? new Promise<string>(() => undefined) : 'mine')
    const { clock, publisher } = await serve(undefined, { token })
    const first = publisher.publish('a', { data: 1 })
    clock.advance(30_000)
    await hurry(clock, first)
    expect(asked).toBe(2)

    asked = 0
    const during = new AbortController()
    const second = publisher.publish('a', { data: 1 }, { signal: during.signal })
    during.abort(new Error('changed my mind'))
    await expect(second).rejects.toThrow('changed my mind')
    expect(clock.timers()).toEqual([])
  })
})

test('with schemas, what does not fit is not sent, and a misspelt type does not compile', async () => {
  const schema = {
    '~standard': {
      version: 1,
      types: undefined as { output: { at: number } } | undefined,
      validate: (value: unknown) =>
        typeof (value as { at?: unknown }).at === 'number'
          ? { value: value as { at: number } }
          : { issues: [{ message: 'is no number', path: ['at'] }] },
    },
  } as const
  const bodies: unknown[] = []
  const fetch = async (_: unknown, init?: RequestInit) => {
    bodies.push(JSON.parse(String(init?.body)))
    return new Response(JSON.stringify({ id: 'e1' }))
  }
  const publisher = createPublisher('http://hub/publish', { fetch, schemas: { 'orders/:id': { shipped: schema } } })
  await publisher.publish('orders/42', { type: 'shipped', data: { at: 1 } })
  // @ts-expect-error data that does not fit
  await expect(publisher.publish('orders/42', { type: 'shipped', data: { at: 'noon' } })).rejects.toMatchObject({
    code: 'invalid-data',
    message: expect.stringContaining('at: is no number'),
  })
  // @ts-expect-error a misspelt type
  await expect(publisher.publish('orders/42', { type: 'shiped', data: { at: 1 } })).rejects.toMatchObject({
    code: 'invalid-type',
  })
  expect(bodies).toEqual([{ channel: 'orders/42', type: 'shipped', data: { at: 1 } }])
})
