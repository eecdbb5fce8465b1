import { attachTo } from '@rejoin/client/testing'
import { createTestHub, type TestHubOptions } from '@rejoin/hub/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type ConnectOptions, connect, type SyncRequired } from '../../src/index.ts'

const url = 'http://app.example/events/orders'

async function testHub(options?: TestHubOptions) {
  const hub = attachTo(await createTestHub(options))
  onTestFinished(hub.close)
  return hub
}

/** A stream with what it has brought so far. */
function read(options: ConnectOptions = {}, address = url) {
  const stream = connect(address, options)
  onTestFinished(() => stream.close())
  const events: unknown[] = []
  const gaps: SyncRequired[] = []
  stream.on('*', ({ data }) => events.push(data))
  stream.onSync((gap) => gaps.push(gap))
  return { stream, events, gaps }
}

describe('a hub in the process of a test', () => {
  test('hands each event to the streams of the process before publish resolves', async () => {
    const hub = await testHub()
    const { stream, events } = read()
    await hub.settle()
    expect(stream.state).toMatchObject({ state: 'connected', transport: 'fetch' })
    await hub.publish('orders', { data: 1 })
    await hub.publish('orders', { data: 2 })
    expect(events).toEqual([1, 2])
  })

  test('after a cut, a stream waits, and brings everything that was missed when the network is back', async () => {
    const hub = await testHub()
    const { stream, events, gaps } = read()
    await hub.settle()
    await hub.cut()
    expect(stream.state).toMatchObject({ state: 'backoff', attempt: 1 })
    await hub.publish('orders', { data: 'during the cut' })
    await hub.advance(60_000)
    expect(stream.state.state).toBe('backoff')
    expect(stream.state.attempt).toBeGreaterThan(2)
    await hub.heal()
    expect(events).toEqual([])
    await hub.advance(60_000)
    expect(stream.state).toMatchObject({ state: 'connected' })
    expect([events, gaps]).toEqual([['during the cut'], []])
  })

  test('a cut of five seconds ends by itself', async () => {
    const hub = await testHub()
    const { stream } = read()
    await hub.settle()
    await hub.cut(5000)
    await hub.advance(4999)
    expect(stream.state.state).not.toBe('connected')
    await hub.advance(60_000)
    expect(stream.state.state).toBe('connected')
  })

  test('after events have expired, a stream that missed some is told, and one that missed none is not', async () => {
    const hub = await testHub()
    const late = read()
    await hub.settle()
    await hub.publish('orders', { data: 1 })
    await hub.expire()
    await hub.cut(1)
    await hub.advance(60_000)
    expect([late.stream.state.state, late.gaps]).toEqual(['connected', []])
    await hub.cut()
    await hub.publish('orders', { data: 2 })
    await hub.expire()
    await hub.heal()
    await hub.advance(60_000)
    await hub.publish('orders', { data: 3 })
    expect(late.gaps).toMatchObject([{ reason: 'expired' }])
    expect(late.events).toEqual([1, 3])
  })

  test('after a restart that keeps the log, streams miss nothing and are told of no gap', async () => {
    const hub = await testHub()
    const { stream, events, gaps } = read()
    await hub.settle()
    await hub.publish('orders', { data: 1 })
    const before = hub.hub
    await hub.restart()
    expect(hub.hub).not.toBe(before)
    expect(stream.state).toMatchObject({ state: 'backoff', closeReason: 'drain' })
    await hub.publish('orders', { data: 2 })
    await hub.advance(60_000)
    expect([stream.state.state, events, gaps]).toEqual(['connected', [1, 2], []])
  })

  test('after a restart that loses the log, streams are told', async () => {
    const hub = await testHub()
    const { events, gaps } = read()
    await hub.settle()
    await hub.publish('orders', { data: 1 })
    await hub.restart('lost')
    await hub.advance(60_000)
    expect(gaps).toMatchObject([{ reason: 'epoch' }])
    await hub.publish('orders', { data: 2 })
    expect(events).toEqual([1, 2])
  })

  test('after a revocation a stream is closed as unauthorized, and goes on at its cursor with new credentials', async () => {
    const hub = await testHub()
    let token = 'first'
    const { stream, events, gaps } = read({ token: () => token })
    await hub.settle()
    expect(stream.state.state).toBe('connected')
    await hub.revoke()
    await hub.advance(60_000)
    expect(stream.state).toMatchObject({ state: 'closed', closeReason: 'unauthorized' })
    await hub.publish('orders', { data: 'while signed out' })
    token = 'second'
    stream.reconnect()
    await hub.settle()
    expect([stream.state.state, events, gaps]).toEqual(['connected', ['while signed out'], []])
  })

  test('a revocation of one subject leaves the others alone', async () => {
    const hub = await testHub({
      authorize: ({ headers }) => ({ subject: headers.get('authorization'), subscribe: ['orders'] }),
    })
    const ada = read({ token: 'ada' })
    const bob = read({ token: 'bob' })
    await hub.settle()
    await hub.revoke('Bearer ada')
    await hub.advance(60_000)
    expect([ada.stream.state.closeReason, bob.stream.state.state]).toEqual(['unauthorized', 'connected'])
  })

  test('when tokens expire, a stream asks for a fresh one and goes on', async () => {
    const hub = await testHub()
    const asked: boolean[] = []
    const token = ({ refresh }: { refresh: boolean }) => `token-${asked.push(refresh)}`
    const { stream, events } = read({ token })
    await hub.settle()
    await hub.expire('token')
    await hub.publish('orders', { data: 1 })
    await hub.advance(60_000)
    expect([stream.state.state, events, asked]).toEqual(['connected', [1], [false, true]])
  })

  test('rights that run out by the clock run out in virtual time', async () => {
    const hub = await testHub({
      authorize: () => ({ subject: 'ada', subscribe: ['*'], expiresAt: hub.clock.now() + 600_000 }),
    })
    const { stream } = read({ token: 'old' })
    const reasons: unknown[] = []
    stream.onState(({ closeReason }) => reasons.push(closeReason))
    await hub.settle()
    await hub.advance(610_000)
    expect(reasons).toContain('token-expired')
    expect(stream.state.state).toBe('connected')
  })

  test('over a slow network events arrive late, and all of them', async () => {
    const hub = await testHub()
    const { events } = read()
    await hub.settle()
    await hub.slow(100)
    await hub.publish('orders', { data: 'x'.repeat(500) })
    expect(events).toEqual([])
    await hub.advance(4000)
    expect(events).toEqual([])
    await hub.advance(4000)
    expect(events).toEqual(['x'.repeat(500)])
  })

  test('a reader that is much too slow catches up from the log when the network is fast again', async () => {
    const hub = await testHub()
    const { events, gaps } = read()
    await hub.settle()
    await hub.slow(10)
    const large = Array.from({ length: 30 }, (_, index) => `${index} ${'x'.repeat(10_000)}`)
    for (const data of large) await hub.publish('orders', { data })
    expect([...hub.hub.admin.connections()]).toMatchObject([{ full: true }])
    await hub.heal()
    expect([events, gaps]).toEqual([large, []])
  })

  test('when nothing gets through, a stream says that it is stale, and comes back when something does', async () => {
    const hub = await testHub({ heartbeatMs: 5000 })
    const { stream, events } = read()
    const stale: boolean[] = []
    stream.onState((state) => stale.push(state.stale))
    await hub.settle()
    await hub.slow(0)
    await hub.advance(60_000)
    expect(stale).toContain(true)
    await hub.publish('orders', { data: 1 })
    expect(events).toEqual([])
    await hub.heal()
    await hub.advance(120_000)
    expect([stream.state.state, stream.state.stale, events]).toEqual(['connected', false, [1]])
  })

  test('a cut ends polls, too', async () => {
    const hub = await testHub()
    const { stream, events } = read({ transports: ['long-poll'] })
    await hub.settle()
    await hub.publish('orders', { data: 1 })
    await hub.cut()
    await hub.publish('orders', { data: 2 })
    await hub.advance(60_000)
    expect([stream.state.state, events]).toEqual(['backoff', [1]])
    await hub.heal()
    await hub.advance(60_000)
    expect(events).toEqual([1, 2])
  })

  test('the same seed gives the same waits', async () => {
    const waits = async (seed: number) => {
      const hub = await testHub({ seed })
      const { stream } = read()
      const seen: unknown[] = []
      stream.onState(({ nextRetryAt }) => nextRetryAt && seen.push(nextRetryAt))
      await hub.settle()
      await hub.cut(30_000)
      await hub.advance(60_000)
      stream.close()
      await hub.close()
      return seen
    }
    const first = await waits(7)
    expect(first.length).toBeGreaterThan(2)
    expect(await waits(7)).toEqual(first)
    expect(await waits(8)).not.toEqual(first)
  })
})

describe('attachTo', () => {
  test('leaves requests that are not for the hub to the fetch that was there before', async () => {
    const { fetch } = globalThis
    onTestFinished(() => {
      globalThis.fetch = fetch
    })
    globalThis.fetch = async (input) => new Response(`mine: ${input}`)
    const hub = await testHub({ basePath: '/api' })
    const { events } = read({}, 'http://app.example/api/events/orders')
    expect(await (await globalThis.fetch('http://app.example/orders')).text()).toBe('mine: http://app.example/orders')
    expect(await (await globalThis.fetch('http://app.example/events/orders')).text()).toContain('mine')
    const published = await globalThis.fetch('http://app.example/api/publish/orders', {
      method: 'POST',
      body: '"hi"',
      headers: { 'Content-Type': 'application/json' },
    })
    expect(published.status).toBe(201)
    await hub.settle()
    expect(events).toEqual(['hi'])
  })

  test('gives time and fetch back when the hub is closed', async () => {
    const { fetch } = globalThis
    const hub = attachTo(await createTestHub({ now: Date.UTC(2001, 0, 1) }))
    expect(globalThis.fetch).not.toBe(fetch)
    await hub.close()
    expect(globalThis.fetch).toBe(fetch)
    const { stream } = read({}, 'http://127.0.0.1:9/events/orders')
    await expect.poll(() => stream.state.nextRetryAt).toBeGreaterThan(Date.now() - 60_000)
  })
})
