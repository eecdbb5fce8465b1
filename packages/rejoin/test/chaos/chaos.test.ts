import { type ConnectOptions, connect, type SyncRequired } from '@rejoin/client'
import { chaosOf } from '@rejoin/client/testing'
import { RejoinError } from '@rejoin/protocol'
import { describe, expect, onTestFinished, test } from 'vitest'
import { serveWithChaos } from '../../src/chaos/serve-with-chaos.ts'
import { runProgram } from '../../src/cli/program.ts'
import type { ServeOptions } from '../../src/serve.ts'
import { secret, token } from '../access/guarded.ts'
import { fakeProcess, run } from '../support/fake-process.ts'
import { send, serving } from '../support/http.ts'

const quick: ServeOptions = { port: 0, hub: { retryMs: 500 } }

async function chaotic(options: ServeOptions = quick) {
  const server = await serveWithChaos(options, {})
  onTestFinished(() => server.close())
  return { url: server.url, server, chaos: chaosOf(server.url) }
}

/** A stream with what it has brought so far, which comes back soon. */
async function read(url: string, options: ConnectOptions = {}) {
  const stream = connect(`${url}/events/orders`, { retryMs: 1, maxRetryMs: 50, ...options })
  onTestFinished(() => stream.close())
  const events: unknown[] = []
  const gaps: SyncRequired[] = []
  stream.on('*', ({ data }) => events.push(data))
  stream.onSync((gap) => gaps.push(gap))
  await becomes(stream, 'connected')
  await expect.poll(() => stream.cursor).not.toBeNull()
  return { stream, events, gaps }
}

function becomes({ onState }: Pick<ReturnType<typeof connect>, 'onState'>, wanted: string): Promise<void> {
  return new Promise((resolve) => {
    const off = onState(({ state }) => {
      if (state !== wanted) return
      resolve()
      queueMicrotask(() => off())
    })
  })
}

async function publish(url: string, data: unknown): Promise<void> {
  const headers = { 'Content-Type': 'application/json' }
  const { status } = await fetch(`${url}/publish/orders`, { method: 'POST', body: JSON.stringify(data), headers })
  expect(status).toBe(201)
}

describe('a test that orders', () => {
  test('a cut breaks every stream until it heals, while publishers are served', async () => {
    const { url, chaos } = await chaotic()
    const { stream, events, gaps } = await read(url)
    await chaos.cut()
    await becomes(stream, 'backoff')
    await publish(url, 'during the cut')
    await expect.poll(() => stream.state.attempt).toBeGreaterThan(3)
    expect(events).toEqual([])
    await chaos.heal()
    await expect.poll(() => events).toEqual(['during the cut'])
    expect(gaps).toEqual([])
  })

  test('a cut for a while ends by itself', async () => {
    const { url, chaos } = await chaotic()
    const { stream } = await read(url)
    await chaos.cut(100)
    await becomes(stream, 'backoff')
    await becomes(stream, 'connected')
  })

  test('a slow network lets a stream fall behind, and a fast one lets it catch up', async () => {
    const { url, server, chaos } = await chaotic()
    const { events, gaps } = await read(url)
    await chaos.slow(0)
    const large = Array.from({ length: 20 }, (_, index) => `${index} ${'x'.repeat(10_000)}`)
    for (const data of large) await publish(url, data)
    expect([...server.hub.admin.connections()]).toMatchObject([{ full: true }])
    expect(events).toEqual([])
    await chaos.heal()
    await expect.poll(() => events).toEqual(large)
    expect(gaps).toEqual([])
  })

  test('that events expire has readers told that missed some of them', async () => {
    const { url, chaos } = await chaotic()
    const { stream, events, gaps } = await read(url)
    await chaos.cut()
    await becomes(stream, 'backoff')
    await publish(url, 1)
    await chaos.expire()
    await chaos.heal()
    await expect.poll(() => gaps).toMatchObject([{ reason: 'expired' }])
    await publish(url, 2)
    await expect.poll(() => events).toEqual([2])
  })

  test('that tokens expire has streams come back with a fresh one', async () => {
    const { url, chaos } = await chaotic()
    const asked: boolean[] = []
    const { stream } = await read(url, { token: ({ refresh }) => `token-${asked.push(refresh)}` })
    await chaos.expire('token')
    await expect.poll(() => asked).toEqual([false, true])
    await becomes(stream, 'connected')
  })

  test('a restart finds the program on the same port, with its events and without a gap', async () => {
    const { url, server, chaos } = await chaotic()
    const { stream, events, gaps } = await read(url)
    await publish(url, 1)
    await expect.poll(() => events).toEqual([1])
    const { hub } = server
    const left = becomes(stream, 'backoff')
    await chaos.restart()
    await left
    expect(server.hub).not.toBe(hub)
    await publish(url, 2)
    await expect.poll(() => events).toEqual([1, 2])
    expect(gaps).toEqual([])
  })

  test('a restart that loses the events has readers told', async () => {
    const { url, chaos } = await chaotic()
    const { events, gaps } = await read(url)
    await publish(url, 1)
    await expect.poll(() => events).toEqual([1])
    await chaos.restart('lost')
    await expect.poll(() => gaps).toMatchObject([{ reason: 'epoch' }])
  })

  test('that rights are taken back closes streams until they have new credentials', async () => {
    const { url, chaos } = await chaotic()
    let session = 'first'
    const { stream, events } = await read(url, { token: () => session })
    await chaos.revoke()
    await becomes(stream, 'closed')
    expect(stream.state.closeReason).toBe('unauthorized')
    await publish(url, 'while signed out')
    session = 'second'
    stream.reconnect()
    await expect.poll(() => events).toEqual(['while signed out'])
  })

  test('that one user of the access rules loses its rights leaves the others alone', async () => {
    const { url, chaos } = await chaotic({ ...quick, access: { jwt: [{ secret }] } })
    const exp = Math.floor(Date.now() / 1000) + 3600
    const tokenOf = (sub: string) => token({ sub, exp, rejoin: { subscribe: ['orders'] } })
    const [ada, bob] = await Promise.all(['ada', 'bob'].map(async (name) => read(url, { token: await tokenOf(name) })))
    await chaos.revoke('ada')
    await becomes(ada!.stream, 'closed')
    expect([ada!.stream.state.closeReason, bob!.stream.state.state]).toEqual(['unauthorized', 'connected'])
  })

  test('an order with a value that is not allowed is rejected, with advice', async () => {
    const { url, chaos } = await chaotic()
    await expect(chaos.slow(-1)).rejects.toThrow('Say ?bytesPerSecond= with a whole number from 0')
    const { status } = await send(url, '/chaos/expire?what=everything', { method: 'POST' })
    expect(status).toBe(400)
  })
})

describe('chaos is for this machine alone', () => {
  test('pages and names of elsewhere are rejected, also where there are access rules', async () => {
    const { url } = await chaotic({ ...quick, access: { anonymous: { subscribe: ['*'] } } })
    const from = (headers: Record<string, string>) => send(url, '/chaos/cut', { method: 'POST', headers })
    expect((await from({ origin: 'https://evil.example' })).status).toBe(403)
    expect((await from({ host: 'evil.example' })).status).toBe(403)
    expect((await send(url, '/events/orders', { headers: { host: 'evil.example' } })).status).toBe(403)
  })

  test.each(['serve', 'config'])('%s rejects it beyond loopback, also with --insecure', async (command) => {
    const { exitCode, stderr } = await run([command, '--chaos', '--host', '0.0.0.0', '--insecure'])
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('Rejoin does not listen on 0.0.0.0 with --chaos')])
  })

  test('it is rejected with a log that lasts', async () => {
    const { exitCode, stderr } = await run(['config', '--chaos', '--log', 'lmdb'])
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('Leave out --log, or leave out --chaos')])
  })
})

test('without --chaos there is nothing to order, and the advice is to add it', async () => {
  const { url } = await serving()
  expect((await send(url, '/chaos/cut', { method: 'POST' })).status).toBe(404)
  const rejected = await chaosOf(url)
    .cut()
    .catch((error) => error)
  expect(rejected).toBeInstanceOf(RejoinError)
  expect([rejected.code, rejected.message]).toEqual(['not-found', expect.stringContaining('rejoin serve --chaos')])
})

test('the program warns when it starts with --chaos, keeps events in memory, and ends in order', async () => {
  const { host, output, emit } = fakeProcess()
  await runProgram(['serve', '--chaos', '--port', '0'], host)
  const lines = output
    .join('')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines.map(({ event }) => event)).toEqual(['server_warning', 'server_ready'])
  expect(lines[0].msg).toContain('--chaos is on')
  expect(lines[1]).toMatchObject({ log: 'memory' })
  emit('SIGTERM')
  const answer = () =>
    fetch(lines[1].url).then(
      ({ status }) => status,
      () => 'gone',
    )
  await expect.poll(answer).toBe('gone')
})
