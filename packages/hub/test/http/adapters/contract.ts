import type { RequestListener, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { createHub, type Grant, type Hub, type HubOptions, type HubSource, RejoinError } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { describe, expect, test } from 'vitest'
import { largeData, largeEvents, numbersRead, openStalledReader } from '../../../../../test/support/stalled-reader.ts'
import { serveListener, type TestServer } from '../../support/http-server.ts'
import { publish } from '../../support/publishing.ts'

/** How the hub is to be served. */
export interface Setup {
  /** What stands before the hub's paths, '' for nothing. */
  readonly prefix: string
  /** Whether the framework's own compression comes first. */
  readonly compressed: boolean
  /** Says what the bearer of a token may do; undefined for a hub that does not ask. */
  readonly authorize?: (token: string | undefined) => Grant | null | Promise<Grant | null>
  /** Called by middleware that stands right before the hub, where the framework has Node's own response. */
  readonly before?: (response: ServerResponse) => void
  /** Told what the framework's own error handler is given, which then answers with 503. */
  readonly onError?: (error: unknown) => void
}

/** An application of one framework, with all of the hub in it. */
export type Serve = (hub: HubSource, setup: Setup) => RequestListener | Promise<RequestListener>

/** In what frameworks differ. */
export interface Traits {
  /** Whether it has an error handler that an application can set. */
  readonly hasErrorHandler: boolean
  /** Whether the adapter is given nothing of Node's, and so does not see its server being closed. */
  readonly isApart?: boolean
  /** What its own server calls on every response, and does not survive when it throws. */
  readonly unguarded?: readonly string[]
}

/**
 * What every adapter has to do, on a real server. Whatever the framework in between, a reader gets the same stream, and the
 * hub hears of what happens to it.
 */
export function adapterContract(serve: Serve, { hasErrorHandler, isApart = false, unguarded = [] }: Traits): void {
  async function start(setup: Partial<Setup> = {}, options: Partial<HubOptions> = {}): Promise<TestServer> {
    const hub = await createHub({ log: memoryLog(), ...options })
    return serveListener(hub, await serve(hub, { prefix: '', compressed: false, ...setup }))
  }

  const data = (events: { type: string; data: string }[]) =>
    events.filter(({ type }) => type === 'message').map((event) => event.data)

  describe('a hub that a function opens', () => {
    async function startOpening(open: (hub: Hub) => Hub | Promise<Hub>): Promise<TestServer> {
      const hub = await createHub({ log: memoryLog() })
      const listener = await serve(() => open(hub), { prefix: '', compressed: false })
      return serveListener(hub, listener)
    }

    test('is opened once, by the first requests for it, and no request for another path', async () => {
      let openings = 0
      const { hub, url, open } = await startOpening(async (hub) => {
        openings += 1
        await new Promise(setImmediate)
        return hub
      })
      await fetch(url('/elsewhere'))
      expect(openings).toBe(0)
      const streams = await Promise.all([open('/events/a'), open('/events/a')])
      await fetch(url('/publish/a'), { method: 'POST', body: '1' })
      for (const stream of streams) await stream.waitFor((events) => events.length === 2)
      expect(hub.readers('a')).toBe(2)
      expect(openings).toBe(1)
    })

    test('and cannot be opened yet sends readers and publishers back, and is opened when they return', async () => {
      let isLocked = true
      const { url, open } = await startOpening((hub) => {
        if (isLocked) throw new RejoinError('The log is locked.', { code: 'log-unavailable', retryable: true })
        return hub
      })
      const native = await open('/events/a')
      await native.ended
      expect(native.status).toBe(200)
      expect(native.text).toMatch(/^retry: [23]\d{3}\nevent: close\ndata: \{"reason":"log-unavailable"\}\n\n$/)
      for (const request of [
        fetch(url('/events/a?reject=status')),
        fetch(url('/poll/a')),
        fetch(url('/publish/a'), { method: 'POST', body: '1' }),
      ]) {
        const answer = await request
        expect(answer.status).toBe(503)
        expect(Number(answer.headers.get('Retry-After'))).toBeGreaterThan(0)
        expect(await answer.json()).toMatchObject({ error: { code: 'log-unavailable' } })
      }
      isLocked = false
      expect((await fetch(url('/publish/a'), { method: 'POST', body: '1' })).status).toBe(201)
      const stream = await open('/events/a?replay=1')
      await stream.waitFor((events) => events.length === 2)
      expect(data(stream.events)).toEqual(['1'])
    })
  })

  describe('a stream', () => {
    test('has the headers that no proxy may hold back, and a greeting with a cursor (§4.2, §4.4)', async () => {
      const { open } = await start()
      const stream = await open('/events/orders/42')
      await stream.waitFor((events) => events.length === 1)
      expect(stream.status).toBe(200)
      expect(stream.headers).toMatchObject({
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-cache, no-transform',
        'x-accel-buffering': 'no',
      })
      expect(stream.headers.vary).toContain('Last-Event-ID, Authorization, Cookie, Origin')
      expect(stream.events[0]).toMatchObject({ type: 'hello', id: expect.stringMatching(/^[0-9A-Z]{26}$/) })
    })

    test('goes on where it was cut: publish ten, return with the fifth id, get six to eleven', async () => {
      const { hub, open } = await start()
      const first = await open('/events/a')
      await publish(hub, 'a', 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
      await first.waitFor((events) => events.length === 11)
      first.cut()
      const second = await open('/events/a', { 'Last-Event-ID': first.events[5]?.id as string })
      await publish(hub, 'a', 11)
      await second.waitFor((events) => events.length === 7)
      expect(data(second.events)).toEqual(['6', '7', '8', '9', '10', '11'])
    })

    test('of several channels, some percent-encoded, comes in one order', async () => {
      const { hub, open } = await start()
      const stream = await open('/events/orders%2F42/r%C3%A4ume?channel=b')
      await stream.waitFor((events) => events.length === 1)
      await publish(hub, 'orders/42/räume', 1)
      await publish(hub, 'b', 2)
      await publish(hub, 'x', 3)
      await publish(hub, 'orders/42/räume', 4)
      await stream.waitFor((events) => events.length === 4)
      expect(data(stream.events)).toEqual(['1', '2', '4'])
    })

    test('of readers that return together is the same for each, with words beyond ASCII in its greeting (§4.6)', async () => {
      const { hub, open } = await start()
      const [cursor = ''] = await publish(hub, 'räume', 0)
      for (let n = 1; n <= 30; n += 1) await hub.publish('räume', { data: `${n} ${'ä'.repeat(100)}` })
      const url = '/events/r%C3%A4ume?added=r%C3%A4ume'
      const readers = await Promise.all(Array.from({ length: 4 }, () => open(url, { 'Last-Event-ID': cursor })))
      for (const reader of readers) {
        await reader.waitFor((events) => events.length >= 32)
        expect(reader.events.slice(0, 2).map(({ type }) => type)).toEqual(['hello', 'sync-required'])
        expect(JSON.parse(reader.events[1]?.data ?? '')).toMatchObject({ reason: 'added', channels: ['räume'] })
        expect(data(reader.events)).toEqual(Array.from({ length: 30 }, (_, n) => `"${n + 1} ${'ä'.repeat(100)}"`))
      }
    })

    test('is the same without chunks over HTTP/1.0', async () => {
      const { hub, raw } = await start()
      const greeted = hub.on('connect', () => void hub.publish('a', { data: 'one' }))
      const text = await raw('GET /events/a HTTP/1.0\r\nHost: x\r\n\r\n', /data: "one"\n\n/)
      greeted()
      expect(text.toLowerCase()).not.toContain('transfer-encoding')
      expect(text.slice(text.indexOf('\r\n\r\n') + 4)).toMatch(
        /^retry: \d+\nid: \w+\nevent: hello\ndata: .*\n\nid: \w+\ndata: "one"\n\n$/,
      )
    })

    test('is not compressed by middleware, which would hold it back', async () => {
      const { hub, open } = await start({ compressed: true })
      const stream = await open('/events/a', { 'Accept-Encoding': 'gzip, br, deflate' })
      await stream.waitFor((events) => events.length === 1)
      await publish(hub, 'a', 1)
      await stream.waitFor((events) => events.length === 2)
      expect(stream.headers['content-encoding']).toBeUndefined()
    })

    test('that a hub ends says why, and ends in order', async () => {
      const { hub, open } = await start()
      const closed = new Promise((resolve) => void hub.on('close', resolve))
      const stream = await open('/events/a')
      await stream.waitFor((events) => events.length === 1)
      await hub.close()
      await stream.ended
      expect(await closed).toMatchObject({ reason: 'drain' })
      expect(stream.events.at(-1)).toMatchObject({ type: 'close', data: '{"reason":"drain"}' })
    })

    testIf(!isApart)('ends with the server that carries it, and so does a poll that waits', async () => {
      const { hub, server, url, open } = await start()
      const [id] = await publish(hub, 'a', 1)
      const polled = fetch(url(`/poll/a?cursor=${id}&waitMs=60000`))
      const stream = await open('/events/a')
      await stream.waitFor((events) => events.length === 1)
      await expect.poll(() => [...hub.admin.connections()].length).toBe(2)
      const closed = new Promise((resolve) => server.close(resolve))
      await stream.ended
      expect(stream.events.at(-1)).toMatchObject({ type: 'close', data: '{"reason":"drain"}' })
      const answer = await polled
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^\d+$/)])
      await answer.text()
      await closed
    })

    test('whose log fails after the headers were sent says so in band, and nothing else', async () => {
      const failing = {
        name: 'failing',
        open: async (...environment: Parameters<ReturnType<typeof memoryLog>['open']>) => {
          const log = await memoryLog().open(...environment)
          log.read = () => Promise.reject(new Error('disk gone'))
          return log
        },
      }
      const { hub, open } = await start({}, { log: failing, hotBytes: 1 })
      const [id] = await publish(hub, 'a', 1, 2)
      const stream = await open('/events/a', { 'Last-Event-ID': id as string })
      await stream.ended
      expect(stream.status).toBe(200)
      expect(stream.text).toMatch(/^retry: \d+\nevent: close\ndata: \{"reason":"log-unavailable"\}\n\n$/)
    })
  })

  describe('a reader', () => {
    test('that leaves is noticed, and its room is free again', async () => {
      const { hub, open } = await start({}, { limits: { maxConnections: 1 } })
      const closed = new Promise((resolve) => void hub.on('close', resolve))
      const first = await open('/events/a')
      await first.waitFor((events) => events.length === 1)
      first.cut()
      expect(await closed).toMatchObject({ reason: 'disconnected', channels: ['a'] })
      const second = await open('/events/a')
      await second.waitFor((events) => events[0]?.type === 'hello')
    })

    test('that leaves while its rights are looked up leaves nothing behind', async () => {
      const asked = new Signal<() => void>()
      const grant: Grant = { subject: 'ada', subscribe: ['*'] }
      const authorize = (token: string | undefined) =>
        token === 'slow' ? new Promise<Grant>((resolve) => asked.tell(() => resolve(grant))) : grant
      const { hub, open, port } = await start({ authorize })
      const connected: string[] = []
      hub.on('connect', ({ channels }) => void connected.push(...channels))
      const socket = connect(port, '127.0.0.1')
      socket.write('GET /events/slow HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer slow\r\n\r\n')
      const answer = await asked.told
      await new Promise((closed) => socket.once('close', closed).resetAndDestroy())
      // One that came and went behind it: the server has seen the first go by then.
      const other = await open('/events/other')
      await other.waitFor((events) => events.length === 1)
      answer()
      const last = await open('/events/last')
      await last.waitFor((events) => events.length === 1)
      expect(connected).toEqual(['other', 'last'])
    })

    test('that stops reading catches up from the log when it reads again, and misses nothing', async () => {
      const window = { maxBytes: 256 * 1024 * 1024, maxEvents: 10_000 }
      const { hub, port } = await start({}, { log: memoryLog({ window }) })
      const socket = await stalledReader(hub, port)
      await publishLarge(hub)
      expect(await numbersRead(socket)).toEqual(Array.from({ length: largeEvents }, (_, n) => n))
      socket.destroy()
    })

    test('that never reads again is given up, with no more waiting than its budget and a turn', async () => {
      const { hub, port } = await start({}, { stallTimeoutMs: 200 })
      const stalled = new Promise<{ pending: number }>((resolve) => void hub.on('stall', resolve))
      const socket = await stalledReader(hub, port)
      await publishLarge(hub)
      expect((await stalled).pending).toBeLessThan(192 * 1024)
      const cut = new Promise((resolve) => socket.once('close', resolve))
      socket.resume()
      await cut
    })
  })

  describe('a request', () => {
    test('publishes, one event or a batch, whatever its content type', async () => {
      const { url, open } = await start()
      const stream = await open('/events/a')
      await stream.waitFor((events) => events.length === 1)
      const post = async (path: string, body: string, type?: string) => {
        const headers = type === undefined ? {} : { 'Content-Type': type }
        return (await fetch(url(path), { method: 'POST', body, headers })).status
      }
      expect(await post('/publish/a?type=note', '{ "n": 1 }', 'application/json')).toBe(201)
      expect(await post('/publish/a', 'plain text', 'text/plain')).toBe(201)
      expect(await post('/publish/a', 'form=no', 'application/x-www-form-urlencoded')).toBe(201)
      expect(await post('/publish', '[{"channel":"a","data":2},{"channel":"a","data":3}]', 'application/json')).toBe(
        201,
      )
      await stream.waitFor((events) => events.length === 6)
      expect(stream.events.slice(1).map((event) => event.data)).toEqual([
        '{ "n": 1 }',
        'plain text',
        'form=no',
        '2',
        '3',
      ])
      expect(stream.events[1]?.type).toBe('note')
    })

    test('with the type text/plain publishes text, whatever it looks like (§5.1)', async () => {
      const { url, open } = await start()
      const stream = await open('/events/a')
      await stream.waitFor((events) => events.length === 1)
      for (const type of ['text/plain', 'text/plain;charset=UTF-8', 'application/json']) {
        const init = { method: 'POST', body: '{"n":1}', headers: { 'Content-Type': type } }
        expect((await fetch(url('/publish/a'), init)).status).toBe(201)
      }
      await stream.waitFor((events) => events.length === 4)
      expect(stream.text.match(/content: text\ndata: \{"n":1\}/g)).toHaveLength(2)
    })

    test('with a body that is too large is rejected, and the connection stays usable (§5.7)', async () => {
      const { raw } = await start()
      const head = `POST /publish/a HTTP/1.1\r\nHost: x\r\nContent-Length: ${300 * 1024}\r\n\r\n`
      const answers = await raw(`${head}${'x'.repeat(300 * 1024)}`, /too-large/)
      expect(answers).toMatch(/^HTTP\/1.1 413/)
    })

    test('polls: what was missed, and then what happens (§4.14)', async () => {
      const { hub, url } = await start()
      const [id] = await publish(hub, 'a', 1, 2)
      const missed = await (await fetch(url('/poll/a'), { headers: { 'Last-Event-ID': id as string } })).json()
      expect(data(missed.events)).toEqual(['2'])
      const waiting = fetch(url(`/poll/a?cursor=${missed.cursor}`))
      await publish(hub, 'a', 3)
      expect(data((await (await waiting).json()).events)).toEqual(['3'])
    })

    test('ends a channel: its readers are told, and do not return when they have all of it (§4.10, §5.8)', async () => {
      const { hub, open, url } = await start()
      const [id] = await publish(hub, 'a/1', 1)
      const stream = await open('/events/a/1', { 'Last-Event-ID': id as string })
      await stream.waitFor((events) => events.length === 1)
      const ended = await fetch(url('/end/a/1'), { method: 'POST' })
      expect([ended.status, await ended.json()]).toEqual([200, { id: expect.any(String) }])
      await stream.ended
      expect(stream.events.at(-1)).toMatchObject({ type: 'close', data: '{"reason":"finished"}' })
      const again = await fetch(url('/events/a/1'), { headers: { 'Last-Event-ID': id as string } })
      expect([again.status, await again.text()]).toEqual([204, ''])
      const late = await fetch(url('/publish/a/1'), { method: 'POST', body: '2' })
      expect([late.status, await late.json()]).toMatchObject([409, { error: { code: 'channel-ended' } }])
    })

    test('reads a pattern, and is told which channel an event is from (§4.1, §4.15)', async () => {
      const { hub, open } = await start()
      const stream = await open('/events/a/*?show=channel')
      await stream.waitFor((events) => events.length === 1)
      await publish(hub, 'b', 1)
      await publish(hub, 'a/1', 2)
      await stream.waitFor((events) => events.length === 2)
      expect([data(stream.events), stream.text.includes('channel: a/1\n')]).toEqual([['2'], true])
    })

    test('for another path is not found, with another method not allowed, with a bad name rejected (§5.7)', async () => {
      const { url } = await start()
      expect((await fetch(url('/nothing'))).status).toBe(404)
      const wrong = await fetch(url('/events/a'), { method: 'DELETE' })
      expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'GET'])
      const bad = await fetch(url('/events/a*'))
      expect([bad.status, (await bad.json()).error.code]).toEqual([400, 'invalid-channel'])
      expect((await fetch(url('/events/a'), { method: 'HEAD' })).status).toBe(200)
    })

    test('is served below a prefix, and only there', async () => {
      const { hub, url, open } = await start({ prefix: '/api/v1' })
      expect((await fetch(url('/api/v1/publish/a'), { method: 'POST', body: '1' })).status).toBe(201)
      const stream = await open('/api/v1/events/a?replay=1')
      await publish(hub, 'a', 2)
      await stream.waitFor((events) => events.length === 3)
      expect(data(stream.events)).toEqual(['1', '2'])
      expect((await fetch(url('/events/a'))).status).toBe(404)
    })

    test('has the rights of its sender, and no more (§7)', async () => {
      const grants: Record<string, Grant> = { ada: { subject: 'ada', subscribe: ['orders/*'], publish: ['orders/1'] } }
      const authorize = (token: string | undefined) => grants[token ?? ''] ?? null
      const { hub, url, open } = await start({ authorize })
      const as = (token: string) => ({ Authorization: `Bearer ${token}` })
      const status = async (path: string, token: string) => (await fetch(url(path), { headers: as(token) })).status
      expect(await status('/events/orders/1', 'eve')).toBe(401)
      expect(await status('/events/news', 'ada')).toBe(403)
      expect(await status('/poll/news', 'ada')).toBe(403)
      const post = { method: 'POST', body: '1', headers: as('ada') }
      expect((await fetch(url('/publish/orders/2'), post)).status).toBe(403)
      const stream = await open('/events/orders/1', as('ada'))
      await stream.waitFor((events) => events.length === 1)
      expect(stream.headers['cache-control']).toBe('private, no-store, no-transform')
      expect((await fetch(url('/publish/orders/1'), post)).status).toBe(201)
      hub.revoke('ada')
      await stream.ended
      expect(stream.events.map(({ type }) => type)).toEqual(['hello', 'message', 'close'])
    })

    test('for which authorize fails is answered with 500, and the program is told', async () => {
      const { hub, url } = await start({
        authorize() {
          throw new Error('database down')
        },
      })
      const failed = new Promise<{ cause: unknown }>((resolve) => void hub.on('error', resolve))
      const answer = await fetch(url('/events/a'))
      expect([answer.status, await answer.text()]).toEqual([500, expect.not.stringContaining('database')])
      expect((await failed).cause).toMatchObject({ message: 'database down' })
    })

    testIf(hasErrorHandler)('for which authorize fails reaches the error handler of the framework', async () => {
      class Teapot extends Error {
        readonly status = 418
      }
      const seen: unknown[] = []
      const { hub, url } = await start({
        authorize(token) {
          throw token === 'teapot' ? new Teapot('I am a teapot') : new Error('database down')
        },
        onError: (error) => void seen.push(error),
      })
      const told: unknown[] = []
      hub.on('error', ({ cause }) => void told.push(cause))
      for (const path of ['/events/a', '/poll/a']) expect((await fetch(url(path))).status).toBe(503)
      expect((await fetch(url('/events/a'), { headers: { Authorization: 'Bearer teapot' } })).status).toBe(503)
      // What says its status was made to be shown. Anything else is not shown to strangers by a handler that shows messages.
      const hidden = { code: 'internal', message: expect.not.stringContaining('database'), cause: told[0] }
      expect(seen).toMatchObject([hidden, { ...hidden, cause: told[1] }, { message: 'I am a teapot' }])
      expect(told).toMatchObject([{ message: 'database down' }, { message: 'database down' }, seen[2]])
    })

    test.each([
      ['status', 500],
      ['statusCode', 502],
    ])('for which authorize fails with a %s of %i shows nothing of the error', async (name, status) => {
      const { url } = await start({
        authorize() {
          throw Object.assign(new Error('database down'), { [name]: status })
        },
      })
      for (const path of ['/events/a', '/poll/a']) {
        const answer = await fetch(url(path))
        expect([answer.status >= 500, await answer.text()]).toEqual([true, expect.not.stringContaining('database')])
      }
    })

    test.each([
      ['seconds', Math.floor(Date.now() / 1000), /multiply it by 1000/],
      ['not a number', Number.NaN, /NaN .*leave it out/],
      ['a text', '2030-01-01' as unknown as number, /"2030-01-01" .*Date\.now\(\)/],
    ])(
      'whose rights expire at %s is answered with 500, and the program is told how to write it',
      async (_, expiresAt, advice) => {
        const { hub, url } = await start({ authorize: () => ({ subject: 'ada', subscribe: ['*'], expiresAt }) })
        const failed = new Promise<{ cause: unknown }>((resolve) => void hub.on('error', resolve))
        expect((await fetch(url('/events/a'))).status).toBe(500)
        expect((await failed).cause).toMatchObject({ code: 'internal', message: expect.stringMatching(advice) })
      },
    )

    test('that only asks for the head of a stream needs the right to it (§7.2)', async () => {
      const authorize = (token: string | undefined) => (token ? { subject: token, subscribe: ['orders/*'] } : null)
      const { hub, url } = await start({ authorize })
      const head = async (path: string, headers = {}) => {
        const { status, headers: got } = await fetch(url(path), { method: 'HEAD', headers })
        return [status, got.get('cache-control')]
      }
      const Authorization = 'Bearer ada'
      expect(await head('/events/orders/1')).toEqual([401, 'no-store'])
      expect(await head('/events/news', { Authorization })).toEqual([403, 'no-store'])
      expect(await head('/events/orders/1', { Authorization })).toEqual([200, 'private, no-store, no-transform'])
      expect([...hub.admin.connections()]).toEqual([])
    })

    test.each(['r%2F..%2Fq', 'r%2f%2e%2e%2fq', '%2E%2E%2Fq', 'r%2F.%2Fq'])(
      'for the channel %s, which is none, is rejected by every adapter (§5.2)',
      async (channel) => {
        const { url } = await start()
        expect((await fetch(url(`/events/${channel}`))).status).toBe(400)
        expect((await fetch(url(`/publish/${channel}`), { method: 'POST', body: '1' })).status).toBe(400)
      },
    )
  })

  // Adapters for `Request` do not see the connection.
  if (!isApart) {
    describe('a connection with many requests behind a stream', () => {
      const request = (line: string) => `${line} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`

      test.each([
        ...['GET /events/a', 'GET /poll/a', 'GET /publish/a', 'POST /publish/a', 'DELETE /channels/a'],
        // The hub is not asked about a path of the application.
        'GET /other',
      ])('is cut, whatever they are: %s', async (line) => {
        const { hub, port, connections } = await start()
        const socket = connect(port, '127.0.0.1').on('error', () => undefined)
        socket.write(request('GET /events/a') + request(line).repeat(900))
        socket.resume()
        await new Promise((resolve) => socket.once('close', resolve))
        await expect.poll(connections).toBe(0)
        await expect.poll(() => [...hub.admin.connections()].length).toBe(0)
      })

      test('is cut when they come one by one, too', async () => {
        const { hub, port, connections } = await start()
        const socket = connect(port, '127.0.0.1').on('error', () => undefined)
        const closed = new Promise((resolve) => socket.resume().once('close', resolve))
        const answered = () => Promise.race([new Promise((resolve) => socket.once('data', resolve)), closed])
        socket.write(request('GET /events/a'))
        await answered()
        // Each is read before the next one is sent: the stream gets an event in between.
        for (let sent = 0; sent < 50 && !socket.destroyed; sent += 1) {
          socket.write(request('GET /events/a'))
          await publish(hub, 'a', sent)
          await answered()
        }
        await expect.poll(connections).toBe(0)
        await expect.poll(() => [...hub.admin.connections()].length).toBe(0)
      })

      test('is cut while the hub is being opened, too', async () => {
        const listener = await serve(() => new Promise(() => undefined), { prefix: '', compressed: false })
        const { port, connections } = await serveListener(await createHub({ log: memoryLog() }), listener)
        const socket = connect(port, '127.0.0.1').on('error', () => undefined)
        socket.write(request('GET /events/a').repeat(900))
        await new Promise((resolve) => socket.resume().once('close', resolve))
        await expect.poll(connections).toBe(0)
      })

      test('is served as long as they are few', async () => {
        const { hub, port } = await start()
        const socket = connect(port, '127.0.0.1')
        hub.on('connect', ({ connection }) => void setImmediate(() => hub.admin.disconnectHere(connection)))
        socket.write(request('GET /events/a') + request('GET /publish/a').repeat(32))
        let text = ''
        socket.setEncoding('latin1').on('data', (part: string) => {
          text += part
        })
        await expect.poll(() => text.match(/HTTP\/1\.1 405/g)?.length).toBe(32)
        socket.destroy()
      })
    })
  }

  if (!isApart) {
    describe('a body that nobody asked for', () => {
      const head = (line: string) => `${line} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`
      const chunks = '1\r\nx\r\n'.repeat(20_000)
      const reader: Grant = { subject: null, subscribe: ['*'] }

      test.each(['GET /events/a', 'GET /poll/a', 'DELETE /channels/a', 'POST /publish/a'])(
        'costs its connection when it comes in chunks of one byte: %s',
        async (line) => {
          const { port, connections } = await start({ authorize: () => reader })
          const socket = connect(port, '127.0.0.1').on('error', () => undefined)
          socket.write(head(line) + chunks)
          await new Promise((resolve) => socket.resume().once('close', resolve))
          await expect.poll(connections).toBe(0)
        },
      )

      test('does not disturb a stream when it is short', async () => {
        const { hub, port } = await start()
        const socket = connect(port, '127.0.0.1')
        socket.write(`${head('GET /events/a')}${'1\r\nx\r\n'.repeat(10)}0\r\n\r\n`)
        let text = ''
        socket.setEncoding('latin1').on('data', (part: string) => {
          text += part
        })
        await expect.poll(() => text).toContain('event: hello')
        await publish(hub, 'a', 1)
        await expect.poll(() => text).toContain('data: 1')
        socket.destroy()
      })
    })
  }

  describe('a target with dots in it', () => {
    // What is given nothing of Node's gets an address that the platform has normalised, and reads that channel.
    test.each(['r/../q', './q', 'r/%2e%2E/q'])('names no channel: %s is rejected (§5.2)', async (channel) => {
      const { hub, port } = await start()
      const socket = connect(port, '127.0.0.1')
      socket.write(`GET /events/${channel} HTTP/1.1\r\nHost: x\r\n\r\n`)
      const answer = await new Promise<string>((resolve) => socket.once('data', (part) => resolve(String(part))))
      socket.destroy()
      if (isApart) expect(answer).toMatch(/^HTTP\/1\.1 (200|404) /)
      else expect(answer).toMatch(/^HTTP\/1\.1 400 /)
      await expect.poll(() => [...hub.admin.connections()].length).toBe(0)
    })
  })

  describe('a fault', () => {
    test('in which requests are reset as soon as they are sent costs other requests nothing', async () => {
      const { hub, port, open } = await start({}, { limits: { maxPerIp: 50, maxOpensPer10s: 100_000 } })
      const paths = ['/events/x', '/poll/x?replay=1', '/events/x?reject=status']
      for (let n = 0; n < 300; n += 1) {
        await new Promise<void>((closed) => {
          const socket = connect(port, '127.0.0.1')
          socket.on('error', () => socket.destroy())
          socket.once('connect', () => {
            socket.write(`GET ${paths[n % paths.length]} HTTP/1.1\r\nHost: x\r\n\r\n`, () => socket.resetAndDestroy())
          })
          socket.once('close', () => closed())
        })
      }
      const stream = await open('/events/a')
      await stream.waitFor((events) => events[0]?.type === 'hello')
      await publish(hub, 'a', 1)
      await stream.waitFor((events) => events.length === 2)
    })

    test.each(['/events/a', '/poll/a', '/events/a//b'])(
      'of middleware that answers a request for %s and passes it on all the same leaves no connection behind',
      async (path) => {
        let answers = true
        const { hub, url, open } = await start({
          before(response) {
            if (answers) response.writeHead(401).end('no')
          },
        })
        const { status } = await fetch(url(path))
        // Frameworks without Node's own response cannot make this mistake.
        if (status !== 401) return
        answers = false
        const stream = await open('/events/a')
        await stream.waitFor((events) => events[0]?.type === 'hello')
        expect([...hub.admin.connections()]).toHaveLength(1)
      },
    )

    test('in which a timeout answers while rights are looked up leaves no connection behind', async () => {
      const asked = new Signal<() => void>()
      const grant: Grant = { subject: null, subscribe: ['*'] }
      let answered: ServerResponse | undefined
      const { hub, url, open } = await start({
        authorize: (token) =>
          token === 'slow' ? new Promise<Grant>((resolve) => asked.tell(() => resolve(grant))) : grant,
        before(response) {
          answered ??= response
        },
      })
      const waiting = fetch(url('/events/slow'), { headers: { Authorization: 'Bearer slow' } })
      const answer = await asked.told
      answered?.writeHead(503).end('too late')
      answer()
      expect((await waiting).status).toBe(answered ? 503 : 200)
      const stream = await open('/events/a')
      await stream.waitFor((events) => events[0]?.type === 'hello')
      expect([...hub.admin.connections()].map(({ channels }) => channels)).toEqual(
        answered ? [['a']] : [['slow'], ['a']],
      )
    })

    test.each(['port.poll', 'publish', 'publishBatch', 'end', 'port.subscribe', 'port.admit'] as const)(
      'in which hub.%s throws costs that request alone, and the program is told',
      async (method) => {
        let armed = true
        const hub = await createHub({ log: memoryLog() })
        const seam = new Error(`hub.${method}`)
        const told: unknown[] = []
        hub.on('error', ({ cause }) => void told.push(cause))
        const [side, name] = method.startsWith('port.') ? [hub.port, method.slice(5)] : [hub, method]
        const failing: object = Object.create(side, {
          [name]: {
            value(...args: never[]) {
              if (armed) throw seam
              return (side as unknown as Record<string, (...args: never[]) => unknown>)[name]?.(...args)
            },
          },
        })
        const sabotaged = (side === hub ? failing : Object.create(hub, { port: { value: failing } })) as Hub
        const listener = await serve(sabotaged, { prefix: '', compressed: false, onError: () => undefined })
        const { url } = await serveListener(hub, listener)
        const requests: [path: string, init?: RequestInit][] = [
          ['/events/a?reject=status'],
          ['/poll/a'],
          ['/publish/a', { method: 'POST', body: '1' }],
          ['/publish', { method: 'POST', body: '[{"channel":"a","data":2}]' }],
          ['/end/b', { method: 'POST' }],
        ]
        const ask = async ([path, init]: [string, RequestInit?]) => {
          const abort = new AbortController()
          const status = await fetch(url(path), { ...init, signal: abort.signal }).then(
            async ({ status, body }) => {
              const first = await body
                ?.getReader()
                .read()
                .then(
                  () => status,
                  () => 0,
                )
              return first ?? status
            },
            () => 0,
          )
          abort.abort()
          return status
        }
        const statuses = []
        for (const request of requests) statuses.push(await ask(request))
        expect(statuses.some((status) => status === 500 || status === 503 || status === 0)).toBe(true)
        expect(new Set(told)).toEqual(new Set([seam]))
        armed = false
        for (const request of requests) expect([200, 201]).toContain(await ask(request))
      },
    )

    test.each(seamsOfResponse.filter((method) => !unguarded.includes(method)))(
      'in which response.%s throws costs that response alone',
      async (method) => {
        const { hub, url, open } = await start({
          before(response) {
            if (!response.req.url?.includes('bad')) return
            response[method] = () => {
              throw new Error(`response.${method}`)
            }
          },
        })
        const post = { method: 'POST', body: '1' }
        for (const [path, init] of [['/events/a'], ['/events/a//b'], ['/poll/a'], ['/publish/b', post]] as const) {
          const abort = new AbortController()
          const bad = fetch(url(`${path}?bad`), { ...init, signal: abort.signal }).catch(() => undefined)
          // Rejected, cut, or left hanging by the framework: what counts is what becomes of the others.
          expect((await fetch(url('/publish/b'), post)).status).toBe(201)
          abort.abort()
          await bad
        }
        const stream = await open('/events/a?replay=1')
        await publish(hub, 'a', 1)
        await stream.waitFor((events) => events.at(-1)?.data === '1')
        await hub.close()
        await stream.ended
      },
    )
  })
}

const seamsOfResponse = ['setHeader', 'getHeader', 'writeHead', 'flushHeaders', 'write', 'end', 'on', 'once'] as const

/** The token of an Authorization header. */
export function bearer(header: string | null | undefined): string | undefined {
  return header?.replace('Bearer ', '')
}

/** Each in a turn of its own: what is published in one turn goes out in one write, however much it is. */
async function publishLarge(hub: Hub): Promise<void> {
  for (let n = 0; n < largeEvents; n += 1) {
    await hub.publish('a', { data: largeData(n) })
    await new Promise(setImmediate)
  }
}

async function stalledReader(hub: Hub, port: number): Promise<Socket> {
  const connected = new Promise<void>((resolve) => void hub.on('connect', () => resolve()))
  const socket = openStalledReader(port, '/events/a')
  await connected
  return socket
}

/** A value that one part of a test tells another. */
class Signal<Value> {
  tell: (value: Value) => void = () => undefined
  readonly told = new Promise<Value>((resolve) => {
    this.tell = resolve
  })
}

/** Adds a test where its promise can hold. Elsewhere the test is left out and not skipped: a skip is a failure with CI=true. */
function testIf(applies: boolean): (name: string, run: () => Promise<void>) => void {
  return applies ? (name, run) => test(name, run) : () => undefined
}
