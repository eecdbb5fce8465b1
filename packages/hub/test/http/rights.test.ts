import type { IncomingMessage } from 'node:http'
import { connect as connectSocket } from 'node:net'
import type { Grant } from '@rejoin/hub'
import { describe, expect, test } from 'vitest'
import { serveHub } from '../support/http-server.ts'

function authorize(request: IncomingMessage) {
  const token = request.headers.authorization?.replace('Bearer ', '')
  if (token === 'ada') return { subject: 'ada', subscribe: ['orders/*', 'news'], publish: ['orders/42'] }
  return token === 'bob' ? { subject: 'bob', subscribe: ['*'], publish: ['*'] } : null
}

const as = (token: string) => ({ Authorization: `Bearer ${token}` })

describe('a hub that asks who you are (§7)', () => {
  test('answers 401 to a request without credentials', async () => {
    const { url, open } = await serveHub({}, { authorize })
    expect((await open('/events/news')).status).toBe(401)
    expect((await fetch(url('/publish/news'), { method: 'POST', body: 'x' })).status).toBe(401)
  })

  test('tells a publisher over its rate limit to wait, and lets it read (§5.7)', async () => {
    const everything = () => ({ subject: 'ada', subscribe: ['*'], publish: ['*'] })
    const asked: unknown[] = []
    const rateLimit = (subject: string | null) => {
      asked.push(subject)
      return 1200
    }
    const { url, open, hub } = await serveHub({}, { authorize: everything, rateLimit })
    for (const path of ['/publish/news', '/publish', '/end/news']) {
      const answer = await fetch(url(path), { method: 'POST', body: 'x' })
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '2'])
      expect(await answer.json()).toEqual({
        error: { code: 'rate-limited', message: 'You publish too fast. Wait for 2 s, or send batches.' },
      })
    }
    expect(hub.admin.totals.events).toBe(0)
    expect((await open('/events/news')).status).toBe(200)
    expect(asked).toEqual(['ada', 'ada', 'ada'])
  })

  test('counts a publisher that it does not know against the rate limit, too', async () => {
    const waits = [0, 1000]
    const { url } = await serveHub({}, { authorize, rateLimit: (subject) => (subject === null && waits.shift()) || 0 })
    const publish = () => fetch(url('/publish/news'), { method: 'POST', body: 'x' })
    expect([(await publish()).status, (await publish()).status]).toEqual([401, 429])
  })

  test('lets a reader read the names that were granted, and everything below a granted prefix', async () => {
    const { open } = await serveHub({}, { authorize })
    const statusOf = async (path: string) => (await open(path, as('ada'))).status
    expect(await statusOf('/events/news')).toBe(200)
    expect(await statusOf('/events/orders/42')).toBe(200)
    expect(await statusOf('/events/orders')).toBe(403)
    expect(await statusOf('/events/newsletter')).toBe(403)
  })

  test('rejects a subscription with one channel too many, whole', async () => {
    const { open } = await serveHub({}, { authorize })
    const answer = await open('/events?channel=news&channel=secret', as('ada'))
    await answer.ended
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([403, 'forbidden'])
    expect(answer.text).not.toContain('secret')
  })

  test('rejects a batch with one channel too many, whole', async () => {
    const { url, hub } = await serveHub({}, { authorize })
    let published = 0
    hub.on('publish', () => {
      published += 1
    })
    const body = JSON.stringify([
      { channel: 'orders/42', data: 1 },
      { channel: 'orders/43', data: 1 },
    ])
    expect((await fetch(url('/publish'), { method: 'POST', headers: as('ada'), body })).status).toBe(403)
    expect(published).toBe(0)
    expect((await fetch(url('/publish/orders/42'), { method: 'POST', headers: as('ada'), body: 'x' })).status).toBe(201)
  })

  test("marks what it made for one subject as nobody else's", async () => {
    const { open } = await serveHub({}, { authorize })
    expect((await open('/events/news', as('ada'))).headers['cache-control']).toBe('private, no-store, no-transform')
  })

  test('an authorize that fails answers 500 and harms nobody', async () => {
    const fail = () => {
      throw new Error('database down')
    }
    const { open } = await serveHub({}, { authorize: fail })
    const answer = await open('/events/news')
    await answer.ended
    expect(answer.status).toBe(500)
    expect(answer.text).not.toContain('database')
  })
})

describe('Idempotency-Key (§5.5)', () => {
  test('the same request again gets the same id, is told so, and makes no second event', async () => {
    const { url, open } = await serveHub()
    const stream = await open('/events/a')
    await stream.waitFor((events) => events.length === 1)
    const send = (body: string, key: string) =>
      fetch(url('/publish/a'), { method: 'POST', body, headers: { 'Idempotency-Key': key } })
    const [first, second] = [await (await send('1', 'k')).json(), await (await send('1', 'k')).json()]
    expect(second).toEqual({ ...first, repeated: true })
    const other = await send('2', 'k')
    expect([other.status, (await other.json()).error.code]).toEqual([422, 'key-reused'])
    await send('3', 'k2')
    await stream.waitFor((events) => events.length === 3)
    expect(stream.events.slice(1).map(({ data }) => data)).toEqual(['1', '3'])
  })

  test('keys of two subjects do not meet', async () => {
    const { url } = await serveHub({}, { authorize })
    const send = async (token: string) => {
      const headers = { ...as(token), 'Idempotency-Key': 'k' }
      return (await (await fetch(url('/publish/orders/42'), { method: 'POST', body: 'x', headers })).json()).id
    }
    expect(await send('ada')).not.toBe(await send('bob'))
  })

  test('a batch is repeated whole', async () => {
    const { url } = await serveHub()
    const body = JSON.stringify([
      { channel: 'a', data: 1 },
      { channel: 'b', data: 2 },
    ])
    const send = async () =>
      (await fetch(url('/publish'), { method: 'POST', body, headers: { 'Idempotency-Key': 'k' } })).json()
    const first = await send()
    expect(await send()).toEqual({ ...first, repeated: true })
  })
})

describe('a hub without room (§4.12)', () => {
  test('tells an EventSource when to return, in a stream it can read', async () => {
    const { open } = await serveHub({ limits: { maxConnections: 1 } })
    const first = await open('/events/a')
    await first.waitFor((events) => events.length === 1)
    const second = await open('/events/a')
    await second.ended
    expect(second.status).toBe(200)
    expect(second.text).toMatch(/^retry: \d+\nevent: close\ndata: \{"reason":"overloaded"\}\n\n$/)
  })

  test('tells a client that asks for it by status', async () => {
    const { open } = await serveHub({ limits: { maxConnections: 1 } })
    const first = await open('/events/a')
    await first.waitFor((events) => events.length === 1)
    const second = await open('/events/a?reject=status')
    await second.ended
    expect(second.status).toBe(503)
    expect(Number(second.headers['retry-after'])).toBeGreaterThan(0)
  })

  test('has room again when a reader leaves', async () => {
    const { hub, open } = await serveHub({ limits: { maxPerIp: 1 } })
    const left = new Promise((resolve) => void hub.on('close', resolve))
    const first = await open('/events/a')
    await first.waitFor((events) => events.length === 1)
    first.cut()
    await left
    const second = await open('/events/a')
    await second.waitFor((events) => events[0]?.type === 'hello')
  })
})

describe('cursors from elsewhere (§3.1, §3.4)', () => {
  test('a trusted proxy may forward the cursor under its own name; anybody else may not', async () => {
    for (const [trustProxy, expected] of [
      [true, true],
      [false, false],
    ]) {
      const { hub, open } = await serveHub({}, { trustProxy: trustProxy as boolean })
      const { id } = await hub.publish('a', { data: 1 })
      const stream = await open('/events/a', { 'X-Forwarded-Last-Event-Id': id })
      await stream.waitFor((events) => events.length === 1)
      expect(JSON.parse(stream.events[0]?.data ?? '').resumed).toBe(expected)
    }
  })

  test('an empty X-Forwarded-For says nothing: the reader has the address of the connection', async () => {
    const { hub, open } = await serveHub({}, { trustProxy: true })
    for (const forwarded of ['', '192.0.2.7, ', '192.0.2.7']) {
      const stream = await open('/events/a', { 'X-Forwarded-For': forwarded })
      await stream.waitFor((events) => events.length === 1)
    }
    expect([...hub.admin.connections()].map(({ ip }) => ip)).toEqual(['127.0.0.1', '127.0.0.1', '192.0.2.7'])
  })

  test('?replay=N and ?lastEventId=earliest start in the past', async () => {
    const { hub, open } = await serveHub()
    for (let n = 1; n <= 5; n += 1) await hub.publish('a', { data: n })
    const last = await open('/events/a?replay=2')
    const all = await open('/events/a?lastEventId=earliest')
    await last.waitFor((events) => events.length === 3)
    await all.waitFor((events) => events.length === 6)
    expect(last.events.slice(1).map(({ data }) => data)).toEqual(['4', '5'])
  })

  test('an event whose publish was answered is found by a reader that connects afterwards', async () => {
    const { url, open } = await serveHub()
    const { id } = await (await fetch(url('/publish/a'), { method: 'POST', body: '1' })).json()
    const stream = await open('/events/a?replay=1')
    await stream.waitFor((events) => events.length === 2)
    expect(stream.events[1]?.id).toBe(id)
  })
})

describe('readers that leave early', () => {
  test('while their rights are looked up leave nothing behind', async () => {
    let answer = () => {}
    let wasAsked = () => {}
    const asked = new Promise<void>((resolve) => {
      wasAsked = resolve
    })
    const slow = () =>
      new Promise<Grant>((resolve) => {
        answer = () => resolve({ subject: 'ada', subscribe: ['*'] })
        wasAsked()
      })
    const { hub, port } = await serveHub({ limits: { maxConnections: 1 } }, { authorize: slow })
    let connects = 0
    hub.on('connect', () => {
      connects += 1
    })
    const socket = connectSocket(port, '127.0.0.1')
    socket.write('GET /events/a HTTP/1.1\r\nHost: x\r\n\r\n')
    await asked
    await new Promise((closed) => socket.once('close', closed).resetAndDestroy())
    await new Promise((resolve) => setTimeout(resolve, 50))
    answer()
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(connects).toBe(0)
  })

  test('with streams pipelined behind each other free all the room they took', async () => {
    const { hub, port } = await serveHub()
    let here = 0
    hub.on('connect', () => {
      here += 1
    })
    const gone = new Promise<void>((resolve) => {
      hub.on('close', () => {
        here -= 1
        if (here === 0) resolve()
      })
    })
    const socket = connectSocket(port, '127.0.0.1')
    socket.write('GET /events/a HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(20))
    await new Promise((resolve) => socket.once('data', resolve))
    await new Promise((resolve) => setTimeout(resolve, 50))
    socket.destroy()
    await gone
  })
})

test('a rejected body does not block the next request of its connection', async () => {
  const { raw } = await serveHub()
  const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
  const head = 'POST /publish/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
  const body = `${chunk.repeat(48)}0\r\n\r\n`
  const answers = await raw(`${head}${body}HEAD /events/a HTTP/1.1\r\nHost: x\r\n\r\n`, /200 OK/)
  expect(answers).toMatch(/^HTTP\/1.1 413/)
})
