import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHub, type Hub, type HubOptions } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { createHandlers } from '../../src/handlers.ts'
import type { RequestOptions } from '../../src/request.ts'
import { createTransport } from '../../src/transports/long-poll.ts'
import { scriptedServer, type Visit } from '../support/scripted-server.ts'
import { runTransport } from '../support/transport-run.ts'

const transportTo = (url: string, options: RequestOptions = {}, now: () => number = Date.now) =>
  createTransport(
    new URL(url),
    options,
    { ...systemClock, now },
    createHandlers({ keep: 0 }, () => true),
  )

async function serve(options: Partial<HubOptions> = {}): Promise<{ hub: Hub; url: string }> {
  const hub = await createHub({ log: memoryLog(), ...options })
  const server = createServer(nodeHandler(hub))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    await hub.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { hub, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/events/a` }
}

async function script() {
  const server = await scriptedServer()
  onTestFinished(server.close)
  return server
}

interface Frame {
  id: string | null
  type: string
  data: string
}

/** A hub's answer to one poll (§4.14). */
function answer(visit: Visit, requested: string | null, events: Frame[], cursor: string | null, heartbeatMs = 25_000) {
  const greeting = { resumed: requested !== null, requested, heartbeatMs, connection: 'c_1' }
  const hello = { id: requested, type: 'hello', data: JSON.stringify(greeting) }
  visit.answer(200, { 'content-type': 'application/json; charset=utf-8' })
  visit.write(JSON.stringify({ events: [hello, ...events], cursor, retryMs: 2100 }))
  visit.end()
}

const event = (id: string): Frame => ({ id, type: 'message', data: `"${id}"` })

describe('long polls against a hub', () => {
  test('bring every event once and in order, however the answers are cut', async () => {
    const { hub, url } = await serve()
    const run = runTransport(transportTo(url))
    await run.waitFor(() => run.blocks.length > 0)
    for (let n = 0; n < 60; n += 1) await hub.publish('a', { data: n })
    const messages = () => run.blocks.filter(({ type }) => type === 'message')
    await run.waitFor(() => messages().length >= 60)
    run.abort()
    expect(messages().map(({ data }) => Number(data))).toEqual(Array.from({ length: 60 }, (_, n) => n))
    expect(run.blocks.filter(({ type }) => type === 'hello')).toHaveLength(1)
    expect(run.reports.filter(({ type }) => type === 'answered')).toHaveLength(1)
    // It may be between two answers, or in the middle of one.
    await Promise.allSettled([run.ended])
  })

  test('start with what was missed, and say what the hub saw of the cursor', async () => {
    const { hub, url } = await serve()
    const { id } = await hub.publish('a', { data: 1 })
    await hub.publish('a', { data: 2 })
    const run = runTransport(transportTo(url), { cursor: id })
    await run.waitFor(() => run.blocks.length >= 2)
    run.abort()
    expect(JSON.parse(run.blocks[0]?.data ?? '')).toMatchObject({ resumed: true, requested: id })
    expect(run.blocks[1]).toMatchObject({ type: 'message', data: '2' })
    await expect(run.ended).rejects.toThrow()
  })

  test('end in order when the hub drains its readers', async () => {
    const { hub, url } = await serve()
    const run = runTransport(transportTo(url))
    await run.waitFor(() => run.blocks.length > 0)
    await hub.drain({ withinMs: 0 })
    await run.ended
    expect(run.blocks.at(-1)).toMatchObject({ type: 'close', data: '{"reason":"drain"}' })
    expect(run.reports).toContainEqual({ type: 'retry', ms: expect.any(Number) })
  })
})

describe('a run of polls', () => {
  test('asks at once for events that are there, then waits no longer than the hub may be silent', async () => {
    const server = await script()
    const run = runTransport(transportTo(server.url))
    const first = await server.visit()
    expect(first.url.pathname).toBe('/events/orders')
    expect(first.url.searchParams.get('waitMs')).toBe('0')
    expect(first.headers).toMatchObject({ accept: 'application/json' })
    answer(first, null, [event('1')], '1', 7000)
    const second = await server.visit()
    expect(second.url.searchParams.get('waitMs')).toBe('7000')
    expect(second.url.searchParams.get('lastEventId')).toBe('1')
    run.abort()
    await expect(run.ended).rejects.toThrow()
    await second.gone
  })

  test('gives the last id to a frame that has none, which moves no cursor', async () => {
    const server = await script()
    const run = runTransport(transportTo(server.url))
    answer(await server.visit(), null, [event('1')], '1')
    answer(await server.visit(), '1', [{ id: null, type: 'close', data: '{"reason":"drain"}' }], '1')
    await run.ended
    expect(run.blocks.map(({ id, type }) => [id, type])).toEqual([
      ['', 'hello'],
      ['1', 'message'],
      ['1', 'close'],
    ])
  })

  test('reports a rejection in its midst, with the time to return', async () => {
    const server = await script()
    const run = runTransport(transportTo(server.url))
    answer(await server.visit(), null, [event('1')], '1')
    const second = await server.visit()
    second.answer(503, { 'retry-after': '7' })
    second.end()
    await run.ended
    expect(run.reports.at(-1)).toEqual({
      type: 'answered',
      status: 503,
      isStream: false,
      retryAfterMs: 7000,
      isElsewhere: true,
    })
  })

  test('reports an answer that is not JSON', async () => {
    const server = await script()
    const run = runTransport(transportTo(server.url))
    const visit = await server.visit()
    visit.answer(200, { 'content-type': 'text/html' })
    visit.end()
    await run.ended
    expect(run.reports).toEqual([
      { type: 'answered', status: 200, isStream: false, retryAfterMs: 0, isElsewhere: true },
    ])
  })

  test('ends, to be opened again, at an answer that was cut off in its type', async () => {
    const server = await script()
    const run = runTransport(transportTo(server.url))
    const visit = await server.visit()
    visit.answer(200, { 'content-type': 'application/js' })
    visit.end()
    await run.ended
    expect(run.reports).toEqual([])
  })

  test('ends when an empty answer comes sooner than the time it was asked to wait', async () => {
    const server = await script()
    const run = runTransport(transportTo(server.url, {}, () => 0))
    answer(await server.visit(), null, [event('1')], '1')
    answer(await server.visit(), '1', [], '1')
    await run.ended
    expect(server.visits()).toBe(2)
  })

  test('ends when a server without hello, which is no hub, has nothing new', async () => {
    const server = await script()
    let now = 0
    // Each answer takes a while: it is not for want of time that the next one is not asked for.
    const run = runTransport(transportTo(server.url, {}, () => ++now))
    for (const waitMs of ['0', '25000']) {
      const visit = await server.visit()
      expect(visit.url.searchParams.get('waitMs')).toBe(waitMs)
      visit.answer(200, { 'content-type': 'application/json' })
      visit.write('{"events":[],"cursor":null,"retryMs":0}')
      visit.end()
    }
    await run.ended
    expect(server.visits()).toBe(2)
  })

  test('ends, and drops the events, when an answer is to another cursor', async () => {
    const server = await script()
    const run = runTransport(transportTo(server.url))
    answer(await server.visit(), null, [event('1')], '1')
    answer(await server.visit(), '7', [event('8')], '8')
    await run.ended
    expect(run.blocks.at(-1)?.id).toBe('1')
  })

  test('sends no further poll while a handler is waited for', async () => {
    const server = await script()
    let settle = () => {}
    const settled = new Promise<void>((resolve) => {
      settle = resolve
    })
    const receive = ({ id }: { id: string }) => (id === '1' ? settled : undefined)
    const run = runTransport(transportTo(server.url), { receive })
    answer(await server.visit(), null, [event('1'), event('2')], '2')
    await run.waitFor(() => run.blocks.length === 2)
    expect(run.blocks.at(-1)?.id).toBe('1')
    settle()
    const second = await server.visit()
    expect(second.url.searchParams.get('lastEventId')).toBe('2')
    run.abort()
    await expect(run.ended).rejects.toThrow()
  })

  test('asks for a fresh token once, not with every poll', async () => {
    const server = await script()
    const asked: boolean[] = []
    const token = ({ refresh }: { refresh: boolean }) => {
      asked.push(refresh)
      return 'secret'
    }
    const run = runTransport(transportTo(server.url, { token }), { refresh: true })
    answer(await server.visit(), null, [event('1')], '1')
    expect((await server.visit()).headers.authorization).toBe('Bearer secret')
    run.abort()
    await expect(run.ended).rejects.toThrow()
    expect(asked).toEqual([true, false])
  })

  test('gives out each event as soon as it is whole, and counts each piece as a sign of life', async () => {
    const server = await script()
    const run = runTransport(transportTo(server.url))
    const visit = await server.visit()
    visit.answer(200, { 'content-type': 'application/json' })
    visit.write('{"events":[{"id":"1","type":"message","data":"1"},{"id":"2","ty')
    await run.waitFor(() => run.blocks.length === 1)
    const bytes = () => run.reports.filter(({ type }) => type === 'bytes').length
    expect(bytes()).toBe(1)
    visit.write('pe":"message","data":"2"}')
    await run.waitFor(() => run.blocks.length === 2)
    visit.write('],"cursor":"2","retryMs":2000}')
    visit.end()
    expect((await server.visit()).url.searchParams.get('lastEventId')).toBe('2')
    expect(run.blocks.map(({ id }) => id)).toEqual(['1', '2'])
    expect(bytes()).toBe(3)
    run.abort()
    await expect(run.ended).rejects.toThrow()
  })

  test('ends, and drops the rest of the answer, at a malformed event', async () => {
    const server = await script()
    const run = runTransport(transportTo(server.url))
    const visit = await server.visit()
    visit.answer(200, { 'content-type': 'application/json' })
    visit.write('{"events":[{"id":"1","type":"message","data":"1"},{}')
    await run.ended
    await visit.gone
    expect(run.blocks).toHaveLength(1)
  })

  test('fails when an answer is cut', async () => {
    const server = await script()
    const run = runTransport(transportTo(server.url))
    const visit = await server.visit()
    visit.answer(200, { 'content-type': 'application/json' })
    visit.write('{"events":[')
    visit.cut()
    await expect(run.ended).rejects.toThrow()
    expect(run.blocks).toEqual([])
  })
})

test.each([0, -1, null, 'soon'])(
  'a heartbeat of %j does not make polls follow each other without a wait',
  async (heartbeatMs) => {
    const server = await script()
    const run = runTransport(transportTo(server.url), { cursor: 'e1' })
    answer(await server.visit(), 'e1', [], 'e1', heartbeatMs as number)
    const second = await server.visit()
    expect(second.url.searchParams.get('waitMs')).toBe('25000')
    answer(second, 'e1', [], 'e1', heartbeatMs as number)
    await run.ended
    expect(server.visits()).toBe(2)
  },
)
