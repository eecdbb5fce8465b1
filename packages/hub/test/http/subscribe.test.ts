import { connect } from 'node:net'
import { memoryLog } from '@rejoin/hub/memory'
import { describe, expect, test } from 'vitest'
import { serveHub } from '../support/http-server.ts'

const data = (events: { type: string; data: string }[]) => events.filter((e) => e.type === 'message').map((e) => e.data)

describe('GET /events', () => {
  test('answers with the headers of an event stream that no proxy may hold back (§4.2)', async () => {
    const { open } = await serveHub()
    const stream = await open('/events/orders/42')
    expect(stream.status).toBe(200)
    expect(stream.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      vary: 'Last-Event-ID, Authorization, Cookie, Origin',
    })
  })

  test('greets with a cursor, the retry time and the heartbeat interval before the first event (§4.4)', async () => {
    const { open } = await serveHub()
    const stream = await open('/events/orders/42')
    await stream.waitFor((events) => events.length === 1)
    expect(stream.text).toMatch(/^retry: 2[0-4]\d\d\nid: [0-9A-Z]{26}\nevent: hello\ndata: \{.*\}\n\n$/)
    expect(JSON.parse(stream.events[0]?.data ?? '')).toEqual({
      ...{
        resumed: false,
        requested: null,
        heartbeatMs: 25_000,
        connection: expect.stringMatching(/^c_[0-9a-f]{10}$/),
      },
    })
  })

  test('publish ten, cut, return with the fifth id: exactly six to ten', async () => {
    const { hub, open } = await serveHub()
    const first = await open('/events/a')
    for (let n = 1; n <= 10; n += 1) await hub.publish('a', { data: n })
    await first.waitFor((events) => events.length === 11)
    first.cut()
    const fifth = first.events[5]?.id as string
    const second = await open('/events/a', { 'Last-Event-ID': fifth })
    await second.waitFor((events) => events.length >= 6)
    await hub.publish('a', { data: 11 })
    await second.waitFor((events) => events.length >= 7)
    expect(data(second.events)).toEqual(['6', '7', '8', '9', '10', '11'])
  })

  test.each(['lastEventId', 'lastEventID', 'cursor'])('takes the cursor from ?%s= too (§3.1)', async (name) => {
    const { hub, open } = await serveHub()
    const { id } = await hub.publish('a', { data: 1 })
    await hub.publish('a', { data: 2 })
    const stream = await open(`/events/a?${name}=${id}`)
    await stream.waitFor((events) => events.length === 2)
    expect(data(stream.events)).toEqual(['2'])
  })

  test('believes the header before the query, because a browser keeps its old URL (§3.1)', async () => {
    const { hub, open } = await serveHub()
    const first = await hub.publish('a', { data: 1 })
    const second = await hub.publish('a', { data: 2 })
    await hub.publish('a', { data: 3 })
    const stream = await open(`/events/a?lastEventId=${first.id}`, { 'Last-Event-ID': second.id })
    await stream.waitFor((events) => events.length === 2)
    expect(data(stream.events)).toEqual(['3'])
  })

  test('a channel may hold slashes, and arrives percent-decoded', async () => {
    const { hub, open } = await serveHub()
    const plain = await open('/events/orders/42/lines')
    const encoded = await open('/events/orders%2F42/r%C3%A4ume')
    await plain.waitFor((events) => events.length === 1)
    await encoded.waitFor((events) => events.length === 1)
    await hub.publish('orders/42/lines', { data: 1 })
    await hub.publish('orders/42/räume', { data: 2 })
    await plain.waitFor((events) => events.length === 2)
    await encoded.waitFor((events) => events.length === 2)
    expect([data(plain.events), data(encoded.events)]).toEqual([['1'], ['2']])
  })

  test('several channels arrive on one stream, in one order', async () => {
    const { hub, open } = await serveHub()
    const stream = await open('/stream?channel=a&channel=b')
    await stream.waitFor((events) => events.length === 1)
    for (const [n, channel] of ['a', 'b', 'x', 'b', 'a'].entries()) await hub.publish(channel, { data: n })
    await stream.waitFor((events) => events.length === 5)
    expect(data(stream.events)).toEqual(['0', '1', '3', '4'])
  })

  test.each([
    ['no channel', '/events'],
    ['an empty channel', '/events/'],
    ['an empty segment', '/events/a//b'],
    ['a dotted segment', '/events/a/../b'],
    ['a NUL', '/events/a%00b'],
    ['a line break', '/events/a%0Ab'],
    ['bytes that are no UTF-8', '/events/%ff'],
    ['a star', '/events/a*'],
    ['257 bytes', `/events/${'a'.repeat(257)}`],
    ['101 channels', `/events?${Array.from({ length: 101 }, (_, n) => `channel=c${n}`).join('&')}`],
  ])('a subscription with %s is rejected with 400 and advice (§5.2)', async (_what, path) => {
    // node:http sends the path as it is; fetch would normalise it first.
    const { open } = await serveHub()
    const answer = await open(path)
    await answer.ended
    expect(answer.status).toBe(400)
    expect(JSON.parse(answer.text).error).toMatchObject({ code: 'invalid-channel', message: expect.any(String) })
  })

  test('two Last-Event-ID headers are one bad cursor, not a choice (§3.2)', async () => {
    const { hub, raw } = await serveHub()
    const { id } = await hub.publish('a', { data: 1 })
    const answer = await raw(
      `GET /events/a HTTP/1.1\r\nHost: x\r\nLast-Event-ID: ${id}\r\nLast-Event-ID: ${id}\r\n\r\n`,
      /sync-required\ndata: .*\n/,
    )
    expect(answer).toMatch(/^HTTP\/1.1 200/)
    expect(answer).toContain('"reason":"unknown-id"')
  })

  test('HTTP/1.0 gets the same stream without chunks', async () => {
    const { hub, raw } = await serveHub()
    const answer = raw('GET /events/a HTTP/1.0\r\n\r\n', /data: "one"\n\n/)
    const published = hub.on('connect', () => void hub.publish('a', { data: 'one' }))
    const text = await answer
    published()
    expect(text.toLowerCase()).not.toContain('transfer-encoding')
    expect(text.slice(text.indexOf('\r\n\r\n') + 4)).toMatch(
      /^retry: 2[0-4]\d\d\nid: \w+\nevent: hello\ndata: .*\n\nid: \w+\ndata: "one"\n\n$/,
    )
  })

  test('a request pipelined behind another waits its turn and gets whole frames', async () => {
    const { raw } = await serveHub()
    const head = 'Host: x\r\n\r\n'
    const text = await raw(
      `HEAD /events/a HTTP/1.1\r\n${head}GET /events/a HTTP/1.1\r\n${head}`,
      /event: hello\ndata: .*\n\n/,
    )
    expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(2)
  })

  test('a reader that stops reading catches up from the log when it reads again, and misses nothing', async () => {
    const { hub, port } = await serveHub({
      log: memoryLog({ window: { maxBytes: 256 * 1024 * 1024, maxEvents: 10_000 } }),
    })
    const socket = connect(port, '127.0.0.1')
    socket.write('GET /events/a HTTP/1.0\r\n\r\n')
    const connected = new Promise<void>((resolve) => void hub.on('connect', () => resolve()))
    socket.pause()
    await connected
    // More than any kernel buffers for one socket.
    const count = 600
    const filler = 'x'.repeat(32 * 1024)
    for (let n = 0; n < count; n += 1) await hub.publish('a', { data: { n, filler } })
    const numbers: number[] = []
    let text = ''
    await new Promise<void>((resolve) => {
      socket.setEncoding('utf8').on('data', (part) => {
        text += part
        const frames = text.split('\n\n')
        text = frames.pop() ?? ''
        for (const frame of frames) {
          const found = /^data: \{"n":(\d+)/m.exec(frame)
          if (found) numbers.push(Number(found[1]))
        }
        if (numbers.length >= count) resolve()
      })
      socket.resume()
    })
    socket.destroy()
    expect(numbers).toEqual(Array.from({ length: count }, (_, n) => n))
  })

  test('a quiet stream is kept alive by comments (§4.7)', async () => {
    const { open } = await serveHub({ heartbeatMs: 50 })
    const stream = await open('/events/a')
    await stream.waitFor((_events, text) => text.includes(': hb\n'))
    expect(stream.text).not.toMatch(/^: hb\n(?!\n)/m)
  })

  test('a hub that closes says so and how long to wait, and ends the stream in order', async () => {
    const { hub, open } = await serveHub()
    const stream = await open('/events/a')
    await stream.waitFor((events) => events.length === 1)
    await hub.close()
    await stream.ended
    expect(stream.events.at(-1)).toMatchObject({ type: 'close', data: '{"reason":"drain"}' })
  })

  test('a reader that leaves is noticed', async () => {
    const { hub, open } = await serveHub()
    const closed = new Promise((resolve) => void hub.on('close', resolve))
    const stream = await open('/events/a')
    await stream.waitFor((events) => events.length === 1)
    stream.cut()
    expect(await closed).toMatchObject({ reason: 'disconnected', channels: ['a'] })
  })

  test('a reader that came back is reported with what it was sent', async () => {
    const { hub, open } = await serveHub()
    const { id } = await hub.publish('a', { data: 1 })
    await hub.publish('a', { data: 2 })
    const replay = new Promise((resolve) => void hub.on('replay', resolve))
    await open('/events/a', { 'Last-Event-ID': id })
    expect(await replay).toMatchObject({ channels: ['a'], requested: id, replayed: 1, elapsedMs: expect.any(Number) })
  })
})

test('other paths are not found, other methods not allowed, each with advice (§5.7)', async () => {
  const { url } = await serveHub()
  const missing = await fetch(url('/nothing'))
  expect([missing.status, (await missing.json()).error.code]).toEqual([404, 'not-found'])
  const wrong = await fetch(url('/events/a'), { method: 'DELETE' })
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'GET'])
  const read = await fetch(url('/publish/a'))
  expect([read.status, read.headers.get('allow')]).toEqual([405, 'POST'])
})
