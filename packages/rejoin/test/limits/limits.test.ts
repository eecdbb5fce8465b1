import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request as requestTo } from 'node:http'
import { connect, type Socket } from 'node:net'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { open, send, serving, until } from '../support/http.ts'

const admin = { token: 'a-token-for-the-admin-of-this-test' }

describe('publishing too fast', () => {
  const limits = { maxPublishesPerSecond: 1, publishBurst: 2 }

  // A machine with much else to do may take a second for three requests, and the next one would be welcome then.
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'] })
    return () => void vi.useRealTimers()
  })

  test('is rejected with the time to wait, and counted', async () => {
    const { url } = await serving({ limits, admin })
    const statuses = [await publish(url), await publish(url), await publish(url)]
    expect(statuses.map(({ status }) => status)).toEqual([201, 201, 429])
    const [, , rejected] = statuses
    expect(rejected?.headers['retry-after']).toBe('1')
    expect(JSON.parse(rejected?.text ?? '').error).toEqual({
      code: 'rate-limited',
      message: 'You publish too fast. Wait for 1 s, or send batches.',
    })
    expect(await rejections(url, 'publish-rate')).toBe(1)
  })

  test('by one subject leaves other subjects alone', async () => {
    const { url } = await serving({ limits, access: { keys: [keyOf('a'), keyOf('b')] } })
    const as = (name: string) => publish(url, { authorization: `Bearer ${secretOf(name)}` })
    expect((await Promise.all([as('a'), as('a'), as('a')])).map(({ status }) => status).sort()).toEqual([201, 201, 429])
    expect((await as('b')).status).toBe(201)
  })

  test('is counted by the address when the subject is not known', async () => {
    const { url } = await serving({ limits, access: { keys: [keyOf('a')] } })
    const wrong = () => publish(url, { authorization: 'Bearer wrong' })
    expect((await Promise.all([wrong(), wrong(), wrong()])).map(({ status }) => status).sort()).toEqual([401, 401, 429])
  })

  test.each([
    ['without rules', {}],
    ['by anonymous rights', { access: { anonymous: { publish: ['*'] } } }],
  ])('is counted by the address that a trusted proxy names, %s', async (_how, options) => {
    const { url } = await serving({ limits, trustProxy: true, ...options })
    const from = (address: string) => publish(url, { 'x-forwarded-for': `10.0.0.1, ${address}` })
    for (const address of ['192.0.2.1', '192.0.2.1', '192.0.2.2', '192.0.2.2']) {
      expect((await from(address)).status).toBe(201)
    }
    expect((await from('192.0.2.1')).status).toBe(429)
  })

  test('is counted by the /64 of an IPv6 address, because one sender has all of it', async () => {
    const { url } = await serving({ limits, trustProxy: true })
    const from = (address: string) => publish(url, { 'x-forwarded-for': address })
    for (const address of ['2001:db8::1', '2001:db8:0:0:ffff::2']) expect((await from(address)).status).toBe(201)
    expect((await from('2001:db8::3')).status).toBe(429)
    expect((await from('2001:db8:0:1::1')).status).toBe(201)
  })

  test('is rejected before the body has come, also when its length is not said', async () => {
    const { url } = await serving({ limits, access: { keys: [keyOf('a')] } })
    const authorization = `Bearer ${secretOf('a')}`
    await Promise.all([publish(url, { authorization }), publish(url, { authorization })])
    const request = requestTo(url, { method: 'POST', path: '/publish/demo', headers: { authorization } })
    request.write('the first piece of many')
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    expect(answer.statusCode).toBe(429)
    request.on('error', () => undefined).destroy()
  })

  test('also counts bodies that are too large', async () => {
    const { url } = await serving({ limits: { ...limits, maxBodyBytes: 10 }, access: { keys: [keyOf('a')] } })
    const headers = { authorization: `Bearer ${secretOf('a')}`, 'transfer-encoding': 'chunked' }
    const statuses = []
    for (let n = 0; n < 3; n += 1) statuses.push((await publish(url, headers, 'eleven char')).status)
    expect(statuses).toEqual([413, 413, 429])
  })

  test('with no burst allowed is every publish', async () => {
    const { url } = await serving({ limits: { maxPublishesPerSecond: 1, publishBurst: 0 } })
    expect((await publish(url)).status).toBe(429)
  })

  test('leaves reading alone', async () => {
    const { url } = await serving({ limits })
    await Promise.all([publish(url), publish(url), publish(url)])
    await until(await open(url, '/events/demo'), 'event: hello')
  })
})

describe('a body that is too large', () => {
  const limits = { maxBodyBytes: 10 }

  test.each([
    ['with its length', {}],
    ['in pieces', { 'transfer-encoding': 'chunked' }],
  ])('%s is rejected, and counted', async (_how, headers) => {
    const { url } = await serving({ limits, admin })
    const { status, text } = await publish(url, headers, 'eleven char')
    expect(status).toBe(413)
    expect(JSON.parse(text).error.code).toBe('too-large')
    expect(await rejections(url, 'body')).toBe(1)
  })

  test('is one that is larger than that, and no other', async () => {
    const { url } = await serving({ limits })
    expect((await publish(url, {}, '0123456789')).status).toBe(201)
    expect((await publish(url, { 'transfer-encoding': 'chunked' }, '0123456789')).status).toBe(201)
    const { text } = await send(url, '/poll/demo?replay=2')
    expect(JSON.parse(text).events.map(({ data }: { data: unknown }) => data)).toEqual([
      expect.anything(),
      '0123456789',
      '0123456789',
    ])
  })

  test('does not stop the next request on its connection', async () => {
    const { url } = await serving({ limits })
    const body = 'x'.repeat(300_000)
    const line = `POST /publish/demo HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    const socket = rawSocket(url)
    socket.write(`${line}GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
    const answers = await read(socket)
    expect([...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['413', '200'])
  })
})

test('a stream of too many channels is rejected, and counted', async () => {
  const { url } = await serving({ limits: { maxChannels: 2 }, admin })
  for (const path of ['/events?channel=a&channel=b&channel=c', '/poll/a?channel=b&%63hannel=c']) {
    const { status, text } = await send(url, path)
    expect([status, JSON.parse(text).error.code]).toEqual([400, 'invalid-channel'])
  }
  expect(await rejections(url, 'channels')).toBe(2)
  await until(await open(url, '/events/a?channel=b'), 'event: hello')
})

describe('slow requests', () => {
  // Far longer than a whole request takes here, and short enough to be waited for.
  const limits = { headersTimeoutMs: 1000, requestTimeoutMs: 1500 }

  test('heads that come byte by byte are cut off, a hundred of them, and counted, while others are served', async () => {
    const { url } = await serving({ limits, admin })
    const attackers = Array.from({ length: 100 }, () => drip(rawSocket(url), 'GET /healthz HTTP/1.1\r\nX-Slow: '))
    const stream = await open(url, '/events/demo')
    await until(stream, 'event: hello')
    const answers = await Promise.all(attackers)
    expect(new Set(answers.map((answer) => answer.split('\r\n')[0]))).toEqual(new Set(['HTTP/1.1 408 Request Timeout']))
    expect(await rejections(url, 'deadline')).toBe(100)
    // A stream lasts as long as it likes: it was asked for in time.
    expect((await publish(url)).status).toBe(201)
    await until(stream, 'data: hello')
  })

  test('bodies that come byte by byte are cut off', async () => {
    const { url } = await serving({ limits, admin })
    const head = 'POST /publish/demo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n'
    const answers = await Promise.all(Array.from({ length: 20 }, () => drip(rawSocket(url), head)))
    expect(answers.filter((answer) => answer.startsWith('HTTP/1.1 201'))).toEqual([])
    expect(await rejections(url, 'deadline')).toBe(20)
  })

  test('bodies without a length that come piece by piece are cut off as well', async () => {
    const { url } = await serving({ limits, admin })
    const head = 'POST /publish/demo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n'
    await drip(rawSocket(url), head, '1\r\nx\r\n')
    expect(await rejections(url, 'deadline')).toBe(1)
  })
})

describe('connections of one address that send no request', () => {
  const limits = { maxSilentPerIp: 2 }

  test('are closed beyond a bound, the newest first, and counted, while other addresses and requests are served', async () => {
    const { url } = await serving({ limits, admin })
    const stream = await open(url, '/events/demo')
    await until(stream, 'event: hello')
    const sockets = Array.from({ length: 5 }, () => rawSocket(url))
    const [first, second, ...others] = sockets as [Socket, Socket, Socket, Socket, Socket]
    // One of them has begun a request, which is none yet.
    others[1]?.write('GET /healthz HTTP/1.1\r\n')
    await Promise.all(others.map((socket) => once(socket.resume(), 'close')))
    expect(await rejections(url, 'silent')).toBe(3)
    const elsewhere = rawSocket(url, '127.0.0.2')
    await once(elsewhere, 'connect')
    for (const socket of [first, second, elsewhere]) {
      socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
      expect(await read(socket)).toContain('HTTP/1.1 200')
    }
    expect((await publish(url)).status).toBe(201)
    await until(stream, 'data: hello')
  })

  test('make room when they ask or go', async () => {
    const { url } = await serving({ limits: { maxSilentPerIp: 1 }, admin })
    for (let round = 1; round <= 2; round += 1) {
      const kept = rawSocket(url)
      await once(kept, 'connect')
      await once(rawSocket(url).resume(), 'close')
      expect(await rejections(url, 'silent')).toBe(round)
      kept.write('GET /events/demo HTTP/1.1\r\nHost: localhost\r\n\r\n')
      await once(kept, 'data')
    }
  })

  test('are not bounded behind a proxy, whose address all connections have', async () => {
    const { url } = await serving({ trustProxy: true, limits: { headersTimeoutMs: 2000 }, admin })
    const answers = await Promise.all(Array.from({ length: 1001 }, () => read(rawSocket(url))))
    // All of them stay until the deadline that everybody has.
    expect(answers.filter((answer) => !answer.startsWith('HTTP/1.1 408'))).toEqual([])
    expect(await rejections(url, 'silent')).toBe(0)
  })
})

describe('requests pipelined on one connection', () => {
  const pipelined = (path: string, count: number, method = 'GET') =>
    `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n`.repeat(count)

  test.each(['/events/demo', '/poll/demo', '/openapi.json', '/healthz'])(
    'cut it when they are hundreds of %s, and the rest is not looked at',
    async (path) => {
      const { url, hub } = await serving({ admin })
      const socket = rawSocket(url)
      socket.write(pipelined(path, 900))
      await closed(socket)
      expect(await rejections(url, 'pipelined')).toBe(1)
      await expect.poll(() => [...hub.admin.connections()].length).toBe(0)
    },
  )

  test.each(['/events/demo', '/events/rejoin.doctor/silent/0123456789abcdef'])(
    'cut it when hundreds of POSTs wait behind the stream %s',
    async (path) => {
      const { url } = await serving({ admin })
      const socket = rawSocket(url)
      socket.write(pipelined(path, 1) + pipelined('/x', 900, 'POST'))
      await closed(socket)
      expect(await rejections(url, 'pipelined')).toBe(1)
    },
  )

  test('cut it when they are hundreds that are answered as soon as they are read', async () => {
    const { url } = await serving({ admin })
    const socket = rawSocket(url)
    const report = 'POST /log HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}'
    socket.write(report.repeat(900))
    await closed(socket)
    expect(await rejections(url, 'pipelined')).toBe(1)
  })

  test('are all answered when they are few', async () => {
    const { url } = await serving({ admin })
    const socket = rawSocket(url)
    const close = 'GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
    socket.write(pipelined('/openapi.json', 20) + close)
    expect((await read(socket)).match(/HTTP\/1\.1 200 OK/g)).toHaveLength(21)
    expect(await rejections(url, 'pipelined')).toBe(0)
  })
})

test('bytes that are not HTTP, and a head that is too large, are counted', async () => {
  const { url } = await serving({ admin })
  const answers = ['no HTTP\r\n\r\n', `GET / HTTP/1.1\r\nX: ${'x'.repeat(70_000)}\r\n\r\n`].map((bytes) => {
    const socket = rawSocket(url)
    socket.write(bytes)
    return read(socket)
  })
  const [malformed, large] = await Promise.all(answers)
  expect(malformed).toContain('HTTP/1.1 400')
  expect(large).toContain('HTTP/1.1 431')
  expect(await rejections(url, 'malformed')).toBe(1)
  expect(await rejections(url, 'headers')).toBe(1)
})

function publish(url: string, headers: Record<string, string> = {}, body = 'hello') {
  return send(url, '/publish/demo', { method: 'POST', headers, body })
}

async function rejections(url: string, kind: string): Promise<number> {
  const { text } = await send(url, '/metrics', { headers: { authorization: `Bearer ${admin.token}` } })
  return Number(new RegExp(`^rejoin_rejects_total\\{.*"${kind}".*\\} (\\d+)$`, 'm').exec(text)?.[1] ?? Number.NaN)
}

function secretOf(name: string): string {
  return `the-key-of-${name}`.padEnd(40, '.')
}

function keyOf(name: string) {
  return { name, sha256: createHash('sha256').update(secretOf(name)).digest('hex'), publish: ['*'] }
}

function rawSocket(url: string, localAddress = '127.0.0.1'): Socket {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress })
  onTestFinished(() => void socket.destroy())
  // A reset is an end like another.
  socket.on('error', () => socket.destroy())
  return socket
}

/** Not by `once`, which rejects when the connection is reset. */
function closed(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.resume().once('close', resolve))
}

/** All that comes until the connection is over. */
function read(socket: Socket): Promise<string> {
  let text = ''
  socket.setEncoding('utf8').on('data', (part) => {
    text += part
  })
  return new Promise((resolve) => void socket.once('close', () => resolve(text)))
}

/** Sends a beginning and then a little ten times a second, until the server has had enough. */
function drip(socket: Socket, beginning: string, little = 'x'): Promise<string> {
  socket.write(beginning)
  const dripping = setInterval(() => socket.writable && socket.write(little), 100)
  return read(socket).finally(() => clearInterval(dripping))
}
