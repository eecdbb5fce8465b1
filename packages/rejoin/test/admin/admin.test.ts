import { createHub, type Grant, type Revocation } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { AdminAction, Logging } from '../../src/logging/logging.ts'
import { createObservation } from '../../src/observation.ts'
import { open, send, until } from '../support/http.ts'
import { admin, adminToken, asAdmin, observed, publish } from '../support/observed.ts'

const adminPaths = [
  ...['/metrics', '/admin/channels', '/admin/connections', '/admin/maintenance'],
  ...['/admin/disconnect', '/admin/invalidate', '/admin/revoke', '/admin/drain', '/debug/sse-state?channel=a'],
  '/admin/ids',
]

describe('the admin API', () => {
  test.each(adminPaths)('at %s does not exist without the token', async (path) => {
    const { url } = await observed()
    const nowhere = await send(url, '/nothing')
    const attempts = [
      {},
      { authorization: 'Bearer wrong-token-of-some-length' },
      { authorization: adminToken },
      { authorization: `Basic ${adminToken}` },
      { authorization: `Bearer ${adminToken}x` },
      { cookie: `token=${adminToken}` },
    ]
    for (const headers of attempts) {
      for (const method of ['GET', 'POST', 'DELETE']) {
        const { status, text } = await send(url, path, { method, headers })
        expect([status, text]).toEqual([nowhere.status, nowhere.text])
      }
    }
    expect((await send(url, `${path}${path.includes('?') ? '&' : '?'}token=${adminToken}`)).status).toBe(404)
  })

  test.each(adminPaths)('at %s does not exist where it is not enabled', async (path) => {
    const { url, adminUrl } = await observed({ admin: undefined })
    expect((await send(url, path, { headers: asAdmin })).status).toBe(404)
    expect((await send(adminUrl, path, { headers: asAdmin })).status).toBe(404)
  })

  test('is open to a request with the token', async () => {
    const { url } = await observed()
    expect((await send(url, '/admin/connections', { headers: asAdmin })).status).toBe(200)
    expect((await send(url, '/metrics', { headers: asAdmin })).status).toBe(200)
  })

  test('the admin port asks for no token when there is none', async () => {
    const { url, adminUrl } = await observed({ admin: {} })
    expect((await send(adminUrl, '/admin/connections')).status).toBe(200)
    expect((await send(url, '/admin/connections')).status).toBe(404)
  })

  test('the admin port asks for the token when there is one', async () => {
    const { adminUrl } = await observed()
    expect((await send(adminUrl, '/admin/connections')).status).toBe(404)
    expect((await send(adminUrl, '/admin/connections', { headers: asAdmin })).status).toBe(200)
  })

  test.each([
    ['a page of another origin', { origin: 'http://localhost:3000' }, 403],
    ['a sandboxed page', { origin: 'null' }, 403],
    ['a name that was pointed at this machine', { host: 'example.com' }, 403],
  ])('the admin port does not serve %s', async (_who, headers, expected) => {
    const { adminUrl } = await observed({ admin: {} })
    const { status } = await send(adminUrl, '/admin/drain', { method: 'POST', headers })
    expect(status).toBe(expected)
  })

  test('the admin port serves pages of its own', async () => {
    const { adminUrl } = await observed({ admin: {} })
    expect((await send(adminUrl, '/admin/connections', { headers: { origin: adminUrl } })).status).toBe(200)
  })

  test('a token that could be guessed is rejected at the start', async () => {
    const hub = await createHub({ log: memoryLog() })
    await expect(createObservation({ hub, version: '1', admin: { token: 'admin' } })).rejects.toThrow('at least 16')
    await hub.close()
  })
})

describe('looking', () => {
  test('shows the channels, by name and in pages, with what they hold', async () => {
    const { url } = await observed()
    for (const channel of ['b/2', 'a', 'b/1']) await publish(url, channel, 'x')
    const first = await admin(url, '/admin/channels?limit=2')
    expect(first.body).toMatchObject({ channels: [{ channel: 'a', events: 1 }, { channel: 'b/1' }], next: 'b/1' })
    expect((await admin(url, '/admin/channels?limit=2&after=b/1')).body).toMatchObject({
      channels: [{ channel: 'b/2' }],
      next: null,
    })
    expect((await admin(url, '/admin/channels?prefix=b/')).body).toMatchObject({
      channels: [{ channel: 'b/1' }, { channel: 'b/2' }],
    })
  })

  test('shows the state of a channel, each figure once', async () => {
    const { url } = await observed()
    const stream = await open(url, '/events/demo')
    await until(stream, 'event: hello')
    const first = JSON.parse((await publish(url, 'demo', 'x')).text).id
    const last = JSON.parse((await publish(url, 'demo', 'y')).text).id
    const { status, body } = await admin(url, '/debug/sse-state?channel=demo')
    expect([status, body]).toEqual([
      200,
      {
        ...{ channel: 'demo', length: 2, bytes: expect.any(Number), ended: false, activeConnections: 1 },
        // Both names of the oldest id are asked for.
        ...{ firstEntry: first, lastEntry: last, oldestIdInWindow: first },
        ...{ oldestAt: expect.any(Number), newestAt: expect.any(Number), limits: expect.any(Object) },
        entries: [expect.objectContaining({ id: first }), expect.objectContaining({ id: last })],
      },
    ])
    stream.destroy()
  })

  test('lists the newest events of a channel or a pattern', async () => {
    const { url } = await observed()
    const stream = await open(url, '/events/orders/*')
    await until(stream, 'event: hello')
    const ids: string[] = []
    for (const [channel, data] of [
      ['orders/1', 'x'],
      ['orders/2', '€'],
      ['news', 'y'],
      ['orders/1', 'zz'],
    ] as const)
      ids.push(JSON.parse((await publish(url, channel, data)).text).id)
    const [first, second, , last] = ids
    const entry = (id: string | undefined, channel: string, bytes: number) => ({
      ...{ id, channel, type: 'message', at: expect.any(Number), bytes: bytes + 'message'.length },
    })
    expect((await admin(url, '/debug/sse-state?channel=orders/1')).body).toMatchObject({
      length: 2,
      activeConnections: 1,
      entries: [entry(first, 'orders/1', 1), entry(last, 'orders/1', 2)],
    })
    expect((await admin(url, '/debug/sse-state?channel=orders/*&limit=2')).body).toMatchObject({
      length: 3,
      activeConnections: 1,
      entries: [entry(second, 'orders/2', 3), entry(last, 'orders/1', 2)],
    })
    stream.destroy()
  })

  test('shows the open streams, in pages, and leaves out those that went', async () => {
    const { url } = await observed({ handler: { authorize: ({ headers }) => grant(String(headers['x-user'])) } })
    const streams = []
    for (const user of ['alice', 'bob', 'alice']) {
      const stream = await open(url, '/events/demo', { headers: { 'x-user': user, 'user-agent': 'test/1' } })
      await until(stream, 'event: hello')
      streams.push(stream)
    }
    const first = (await admin(url, '/admin/connections?limit=1')).body as { next: string }
    expect(first).toMatchObject({
      connections: [{ subject: 'alice', channels: ['demo'], mode: 'live', userAgent: 'test/1', ip: '127.0.0.1' }],
    })
    const rest = (await admin(url, `/admin/connections?limit=2&after=${first.next}`)).body
    expect(rest).toMatchObject({ connections: [{}, {}], total: 3, next: null })
    const ofAlice = (await admin(url, '/admin/connections?subject=alice')).body
    expect(ofAlice).toMatchObject({ connections: [{ subject: 'alice' }, { subject: 'alice' }], next: null })
    expect((await admin(url, '/admin/connections?channel=other')).body).toEqual({
      connections: [],
      total: 0,
      next: null,
    })
    for (const stream of streams) stream.destroy()
    await expect
      .poll(async () => (await admin(url, '/admin/connections')).body)
      .toEqual({ connections: [], total: 0, next: null })
  })

  test.each([
    ['/debug/sse-state', 'Say which channel'],
    ['/debug/sse-state?channel=a*', 'is no pattern'],
    ['/debug/sse-state?channel=a//b', 'is no channel'],
    ['/debug/sse-state?channel=a&limit=0', 'Give 1 to 1000'],
    ['/admin/channels?limit=0', 'Give 1 to 1000'],
    ['/admin/channels?limit=1001', 'Give 1 to 1000'],
    ['/admin/connections?limit=x', 'whole number'],
  ])('%s is rejected with advice', async (path, advice) => {
    const { url } = await observed()
    const { status, body } = await admin(url, path)
    expect([status, body]).toMatchObject([400, { error: { message: expect.stringContaining(advice) } }])
  })
})

describe('acting', () => {
  test('ends the stream with that name, which is told that an admin did', async () => {
    const { url } = await observed()
    const stream = await open(url, '/events/demo')
    const connection = /"connection":"(\w+)"/.exec(await until(stream, '"connection"'))?.[1]
    const ended = until(stream, '{"reason":"admin"}')
    expect((await admin(url, '/admin/disconnect', { connection })).body).toEqual({
      disconnected: 1,
      nodes: 1,
      confirmed: 1,
    })
    await ended
    expect((await admin(url, '/admin/disconnect', { connection })).body).toEqual({
      disconnected: 0,
      nodes: 1,
      confirmed: 1,
    })
  })

  test('ends all streams of a subject', async () => {
    const { url } = await observed({ handler: { authorize: () => grant('alice') } })
    const streams = [await open(url, '/events/a'), await open(url, '/events/b')]
    const ended = Promise.all(streams.map((stream) => until(stream, '{"reason":"admin"}')))
    expect((await admin(url, '/admin/disconnect', { subject: 'alice' })).body).toEqual({
      disconnected: 2,
      nodes: 1,
      confirmed: 1,
    })
    await ended
  })

  test('revokes what a subject holds, then ends its streams', async () => {
    const revoked: unknown[] = []
    const onRevoke = (revocation: Revocation) => void revoked.push(revocation)
    const { url } = await observed({ hubOptions: { onRevoke }, handler: { authorize: () => grant('alice') } })
    const ended = until(await open(url, '/events/a'), '{"reason":"token-expired"}')
    const { status, body } = await admin(url, '/admin/revoke', { subject: 'alice' })
    expect([status, body]).toEqual([200, { revoked: 'alice', nodes: 1, confirmed: 1 }])
    await ended
    await admin(url, '/admin/revoke', { subject: 'bob', jti: 't-1', until: 1_900_000_000_000 })
    expect(revoked).toEqual([
      { subject: 'alice', at: expect.any(Number) },
      { subject: 'bob', jti: 't-1', until: 1_900_000_000_000, at: expect.any(Number) },
    ])
  })

  test('tells the readers of a channel that it was invalidated', async () => {
    const { url } = await observed()
    const told = until(await open(url, '/events/demo'), '"reason":"forced"')
    expect((await admin(url, '/admin/invalidate', { channel: 'demo' })).body).toEqual({ invalidated: 'demo' })
    await told
  })

  test('lets all readers go, takes no new ones, and is not ready from then on', async () => {
    const { url } = await observed()
    const ended = until(await open(url, '/events/demo'), '{"reason":"drain"}')
    expect((await admin(url, '/admin/drain', { withinMs: 10 })).status).toBe(202)
    await ended
    expect((await send(url, '/readyz')).status).toBe(503)
    expect((await send(url, '/events/demo')).text).toContain('{"reason":"drain"}')
  })

  test.each([
    ['/admin/disconnect', {}, 'either'],
    ['/admin/disconnect', { connection: 'a', subject: 'b' }, 'either'],
    ['/admin/disconnect', { connection: 5 }, 'has to be a string'],
    ['/admin/invalidate', { channel: '' }, 'has to be a string'],
    ['/admin/invalidate', { channel: '../x' }, 'is no channel'],
    ['/admin/revoke', {}, 'is missing'],
    ['/admin/revoke', { subject: 'a', until: 'soon' }, 'milliseconds'],
    ['/admin/revoke', [], 'JSON object'],
    ['/admin/drain', { withinMs: -1 }, 'milliseconds'],
    ['/admin/maintenance', { on: 'yes' }, 'true or false'],
    ['/admin/maintenance', { on: true, retryAfterMs: 1e12 }, 'milliseconds'],
  ])('%s with %j is rejected with advice', async (path, body, advice) => {
    const { url } = await observed()
    const answer = await admin(url, path, body)
    expect(answer).toMatchObject({ status: 400, body: { error: { message: expect.stringContaining(advice) } } })
  })

  test('a body that is no JSON, or too long, is rejected and the next request on that connection is served', async () => {
    const { url } = await observed()
    const act = (body: string) => send(url, '/admin/revoke', { method: 'POST', headers: asAdmin, body })
    expect((await act('{')).status).toBe(400)
    expect((await act(`"${'x'.repeat(100_000)}"`)).status).toBe(413)
    expect((await act('{"subject":"alice"}')).status).toBe(200)
  })

  test('the wrong method is told which is right', async () => {
    const { url } = await observed()
    const { status, headers, text } = await send(url, '/admin/revoke', { headers: asAdmin })
    expect([status, headers.allow, JSON.parse(text).error.code]).toEqual([405, 'POST', 'wrong-method'])
  })

  test('every change is announced, with what it was done to', async () => {
    const actions: AdminAction[] = []
    const logging = { administered: (action) => void actions.push(action) } as Partial<Logging> as Logging
    const { url } = await observed({ logging })
    await admin(url, '/admin/revoke', { subject: 'alice' })
    await admin(url, '/admin/invalidate', { channel: 'demo' })
    await admin(url, '/admin/maintenance', { on: true })
    await admin(url, '/admin/drain', {})
    await admin(url, '/admin/channels')
    await admin(url, '/admin/revoke', {})
    expect(actions).toEqual([
      { action: 'revoke', target: 'alice', ip: '127.0.0.1' },
      { action: 'invalidate', target: 'demo', ip: '127.0.0.1' },
      { action: 'maintenance', target: 'on', ip: '127.0.0.1' },
      { action: 'drain', ip: '127.0.0.1' },
    ])
  })
})

describe('maintenance', () => {
  test('closes streams with a reason and a time to return', async () => {
    const { url } = await observed()
    const stream = await open(url, '/events/demo')
    const ended = until(stream, '{"reason":"maintenance"}')
    const { body } = await admin(url, '/admin/maintenance', { on: true, retryAfterMs: 30_000, withinMs: 0 })
    expect(body).toEqual({ on: true, retryAfterMs: 30_000 })
    expect(await ended).toMatch(/^retry: 3[0-6]\d{3}$/m)
  })

  test.each(['/events/demo', '/events?channel=demo', '/stream/demo'])(
    'ends %s at once, by a status that an EventSource comes back from',
    async (path) => {
      const { url } = await observed()
      await admin(url, '/admin/maintenance', { on: true, retryAfterMs: 10_000 })
      const { status, headers, text } = await send(url, path)
      expect([status, headers['content-type']]).toEqual([200, 'text/event-stream; charset=utf-8'])
      expect(text).toMatch(/^retry: 1[0-2]\d{3}\nevent: close\ndata: \{"reason":"maintenance"\}\n\n$/)
    },
  )

  test.each(['/events/demo?reject=status', '/poll/demo', '/poll?channel=demo'])(
    'answers %s with 503 and Retry-After',
    async (path) => {
      const { url } = await observed()
      await admin(url, '/admin/maintenance', { on: true })
      const { status, headers } = await send(url, path)
      expect(status).toBe(503)
      expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(60)
      expect(Number(headers['retry-after'])).toBeLessThanOrEqual(72)
    },
  )

  test('that is over closes no further streams', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { url, inner } = await observed()
    for (let reader = 0; reader < 4; reader += 1) await open(url, '/events/demo')
    let ended = 0
    inner.on('close', () => {
      ended += 1
    })
    await admin(url, '/admin/maintenance', { on: true, withinMs: 4000 })
    vi.advanceTimersByTime(1500)
    expect(ended).toBe(2)
    await admin(url, '/admin/maintenance', { on: false })
    vi.advanceTimersByTime(10_000)
    expect(ended).toBe(2)
  })

  test('takes publishes meanwhile, which readers get when they return', async () => {
    const { url } = await observed()
    const before = JSON.parse((await publish(url, 'demo', 'before')).text).id
    await admin(url, '/admin/maintenance', { on: true })
    expect((await publish(url, 'demo', 'meanwhile')).status).toBe(201)
    await admin(url, '/admin/maintenance', { on: false })
    expect((await admin(url, '/admin/maintenance')).body).toEqual({ on: false })
    const stream = await open(url, '/events/demo', { headers: { 'last-event-id': before } })
    expect(await until(stream, 'data: meanwhile')).toContain('"resumed":true')
  })
})

function grant(subject: string): Grant {
  return { subject, subscribe: ['*'], publish: ['*'] }
}
