import { describe, expect, test } from 'vitest'
import { serveHub, type TestServer } from '../support/http-server.ts'

interface Body {
  readonly events: { readonly id: string | null; readonly type: string; readonly data: string }[]
  readonly cursor: string | null
  readonly retryMs: number
}

async function poll({ url }: TestServer, path: string, headers: Record<string, string> = {}) {
  const response = await fetch(url(path), { headers })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Body }
}

describe('GET /poll', () => {
  test('gives a reader without a cursor one at once, and the hub’s greeting (§4.14)', async () => {
    const server = await serveHub()
    const { status, headers, body } = await poll(server, '/poll/orders/42')
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(body.events[0]).toMatchObject({ type: 'hello', id: body.cursor })
    expect(body.retryMs).toBeGreaterThanOrEqual(2000)
  })

  test('gives what was missed, as the same text that a stream gives, and goes on behind it', async () => {
    const server = await serveHub()
    const { body } = await poll(server, '/poll/a')
    await server.hub.publish('a', { type: 'note', text: 'two\nlines, \u{feff}BOM, ü and 🙂' })
    await server.hub.publish('a', { data: { n: 2 } })
    const stream = await server.open(`/events/a?lastEventId=${body.cursor}`)
    await stream.waitFor((events) => events.length === 3)
    const missed = (await poll(server, `/poll/a?cursor=${body.cursor}`)).body
    expect(missed.events.slice(1).map(({ id, type, data }) => ({ id, type, data }))).toEqual(stream.events.slice(1))
    expect(missed.cursor).toBe(stream.events.at(-1)?.id)
  })

  test('waits for the next event when there is none yet', async () => {
    const server = await serveHub()
    const { id } = await server.hub.publish('a', { data: 1 })
    const connected = new Promise((resolve) => server.hub.on('connect', resolve))
    const waiting = poll(server, '/poll/a', { 'Last-Event-ID': id })
    await connected
    const next = await server.hub.publish('a', { data: 2 })
    const { body } = await waiting
    expect(body.events.map(({ type, data }) => (type === 'message' ? data : type))).toEqual(['hello', '2'])
    expect(body.cursor).toBe(next.id)
  })

  test('says nothing after waitMs, with a cursor to go on from', async () => {
    const server = await serveHub()
    const { id } = await server.hub.publish('a', { data: 1 })
    const { body } = await poll(server, `/poll/a?lastEventId=${id}&waitMs=20`)
    expect(body.events.map(({ type }) => type)).toEqual(['hello', 'checkpoint'])
    expect(body.cursor).toBe(id)
  })

  test('tells of a gap as a stream does, and moves the cursor over it (§4.6)', async () => {
    const server = await serveHub()
    const { body } = await poll(server, '/poll/a?cursor=nonsense&waitMs=0')
    const [hello, sync] = body.events
    expect(hello).toMatchObject({ type: 'hello', id: null })
    expect(JSON.parse(sync?.data ?? '')).toMatchObject({ reason: 'unknown-id', requested: 'nonsense' })
    expect(body.cursor).toBe(sync?.id)
  })

  test('takes several channels, types, replay and earliest, as a stream does (§3.4, §4.1)', async () => {
    const server = await serveHub()
    await server.hub.publish('a', { type: 'x', data: 1 })
    await server.hub.publish('b', { type: 'y', data: 2 })
    await server.hub.publish('b', { type: 'x', data: 3 })
    const data = ({ body }: { body: Body }) =>
      body.events.filter(({ type }) => type === 'x' || type === 'y').map((event) => event.data)
    expect(data(await poll(server, '/poll?channel=a&channel=b&cursor=earliest&waitMs=0'))).toEqual(['1', '2', '3'])
    expect(data(await poll(server, '/poll?channel=a&channel=b&type=x&cursor=earliest'))).toEqual(['1', '3'])
    expect(data(await poll(server, '/poll/b?replay=1'))).toEqual(['3'])
    for (const many of ['1000000000', '9'.repeat(30)]) {
      expect(data(await poll(server, `/poll/b?replay=${many}`))).toEqual(
        data(await poll(server, '/poll/b?replay=1000')),
      )
    }
  })

  test('asks for the same rights (§7)', async () => {
    const authorize = ({ headers }: { headers: { authorization?: string | undefined } }) =>
      headers.authorization ? { subject: headers.authorization, subscribe: ['a'], publish: [] } : null
    const server = await serveHub({}, { authorize })
    expect((await poll(server, '/poll/a')).status).toBe(401)
    expect((await poll(server, '/poll/b', { Authorization: 'me' })).status).toBe(403)
    expect((await poll(server, '/poll/a', { Authorization: 'me' })).status).toBe(200)
  })

  test('ends the wait of a reader whose rights are gone, with close (§4.10)', async () => {
    const authorize = () => ({ subject: 'me', subscribe: ['*'], publish: [] })
    const server = await serveHub({}, { authorize })
    const { id } = await server.hub.publish('a', { data: 1 })
    const connected = new Promise((resolve) => server.hub.on('connect', resolve))
    const waiting = poll(server, `/poll/a?cursor=${id}`)
    await connected
    server.hub.revoke('me')
    const { body } = await waiting
    expect(body.events.at(-1)).toMatchObject({ type: 'close', data: '{"reason":"token-expired"}' })
    expect(body.cursor).toBe(id)
  })

  test('says by status that there is no room, and when to return (§4.12)', async () => {
    const server = await serveHub({ limits: { maxConnections: 1 } })
    await server.open('/events/a')
    const { status, headers } = await poll(server, '/poll/a')
    expect(status).toBe(503)
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
  })

  test('rejects a bad channel and another method', async () => {
    const server = await serveHub()
    expect((await poll(server, '/poll/a//b')).status).toBe(400)
    expect((await fetch(server.url('/poll/a'), { method: 'POST' })).status).toBe(405)
  })

  test('lets go of a reader that leaves while it waits', async () => {
    const server = await serveHub()
    const { id } = await server.hub.publish('a', { data: 1 })
    const connected = new Promise((resolve) => server.hub.on('connect', resolve))
    const closed = new Promise((resolve) => server.hub.on('close', resolve))
    const leaving = new AbortController()
    const waiting = fetch(server.url(`/poll/a?cursor=${id}`), { signal: leaving.signal })
    await connected
    leaving.abort()
    await expect(waiting).rejects.toThrow()
    expect(await closed).toMatchObject({ reason: 'disconnected' })
  })
})

describe('heartbeats', () => {
  test('come as events to a reader that asks for that, without an id (§4.7)', async () => {
    const server = await serveHub({ heartbeatMs: 50 })
    const stream = await server.open('/events/a?heartbeat=event')
    await stream.waitFor((events) => events.some(({ type }) => type === 'heartbeat'))
    expect(stream.text).toMatch(/\n\n(?:retry: \d+\n)?event: heartbeat\ndata: \{\}\n\n/)
    expect(stream.text).not.toContain(': hb')
  })
})
