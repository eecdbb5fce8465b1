import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import type { Message } from '../../src/hub/publish/message.ts'
import { serveHub, type TestServer } from '../support/http-server.ts'

async function post(server: TestServer, path: string, body?: string | Uint8Array<ArrayBuffer>) {
  const response = await fetch(server.url(path), { method: 'POST', ...(body === undefined ? {} : { body }) })
  return { status: response.status, body: await response.json() }
}

/** A reader on a channel, and whatever it gets. */
async function listen(server: TestServer, path: string) {
  const stream = await server.open(path)
  await stream.waitFor((events) => events.length === 1)
  return stream
}

describe('a hub with a default channel', () => {
  test('serves requests that name no channel, and others as before (§4.1, §5.1)', async () => {
    const server = await serveHub({ defaultChannel: 'news' })
    const streams = [await listen(server, '/stream'), await listen(server, '/events')]
    const other = await listen(server, '/events?channel=other')
    expect((await post(server, '/publish', '{"msg":"hello"}')).status).toBe(201)
    await post(server, '/publish?type=note', 'plain text')
    await post(server, '/publish', '[1,2]')
    await post(server, '/publish', '{"channel":"other","data":1}')
    await post(server, '/publish', '[{"channel":"news","data":2},{"channel":"other","data":3}]')
    for (const stream of streams) {
      await stream.waitFor((events) => events.length === 5)
      expect(stream.events.slice(1).map(({ type, data }) => [type, data])).toEqual([
        ['message', '{"msg":"hello"}'],
        ['note', 'plain text'],
        ['message', '[1,2]'],
        ['message', '2'],
      ])
    }
    await other.waitFor((events) => events.length === 3)
    expect(other.events.slice(1).map(({ data }) => data)).toEqual(['1', '3'])
    const poll = await fetch(server.url('/poll?lastEventId=earliest'))
    const polled = (await poll.json()) as { events: { data: string }[] }
    expect(polled.events.map(({ data }) => data)).toEqual(
      expect.arrayContaining(['{"msg":"hello"}', 'plain text', '[1,2]', '2']),
    )
  })

  test('asks for the right to that channel (§7)', async () => {
    const authorize = () => ({ subject: 'ann', subscribe: ['other'], publish: ['other'] })
    const server = await serveHub({ defaultChannel: 'news' }, { authorize })
    expect((await fetch(server.url('/stream'))).status).toBe(403)
    expect((await post(server, '/publish', '{"msg":"hello"}')).status).toBe(403)
  })

  test('has a channel for a name, or does not open', async () => {
    await expect(serveHub({ defaultChannel: 'news/*' })).rejects.toMatchObject({ code: 'invalid-channel' })
  })
})

describe('POST /publish', () => {
  test('a body posted to a channel is the text of one event (§5.1)', async () => {
    const server = await serveHub()
    const stream = await listen(server, '/events/orders/42')
    const answer = await post(server, '/publish/orders/42?type=shipped', '{"at":1}')
    await stream.waitFor((events) => events.length === 2)
    expect(stream.events[1]).toEqual({ type: 'shipped', data: '{"at":1}', id: answer.body.id })
    const id = expect.stringMatching(/^[0-9A-Z]{26}$/)
    expect(answer).toEqual({ status: 201, body: { id, durability: 'memory' } })
  })

  test('a publish that is repeated under its Idempotency-Key says so, with the ids of the first (§5.5)', async () => {
    const server = await serveHub()
    const headers = { 'Idempotency-Key': 'k' }
    const batch = { 'Idempotency-Key': 'batch' }
    const send = async (path: string, body: string, headers: Record<string, string>) =>
      (await fetch(server.url(path), { method: 'POST', body, headers })).json()
    const first = await send('/publish/a', '1', headers)
    expect(first).not.toHaveProperty('repeated')
    expect(await send('/publish/a', '1', headers)).toEqual({ ...first, repeated: true })
    const events = '[{"channel":"a","data":1},{"channel":"b","data":2}]'
    const firstBatch = await send('/publish', events, batch)
    expect(await send('/publish', events, batch)).toEqual({ ...firstBatch, repeated: true })
  })

  test('an envelope carries a JSON value or text (§5.1)', async () => {
    const server = await serveHub()
    const stream = await listen(server, '/events/a')
    await post(server, '/publish', '{"channel":"a","type":"t","data":{"x":[1,null]}}')
    await post(server, '/publish', '{"channel":"a","text":"two\\r\\nlines"}')
    await post(server, '/publish', '{"channel":"a","data":null}')
    await stream.waitFor((events) => events.length === 4)
    expect(stream.events.slice(1).map(({ type, data }) => [type, data])).toEqual([
      ['t', '{"x":[1,null]}'],
      ['message', 'two\nlines'],
      ['message', 'null'],
    ])
  })

  test('a batch is appended whole, and answered in its order (§5.6)', async () => {
    const server = await serveHub()
    const stream = await listen(server, '/events?channel=a&channel=b')
    const { status, body } = await post(server, '/publish', '[{"channel":"b","data":1},{"channel":"a","data":2}]')
    await stream.waitFor((events) => events.length === 3)
    expect(status).toBe(201)
    expect(body.events).toEqual(stream.events.slice(1).map(({ id }) => ({ id })))
    expect(stream.events.slice(1).map(({ data }) => data)).toEqual(['1', '2'])
  })

  test('an empty body is an event with empty data', async () => {
    const server = await serveHub()
    const stream = await listen(server, '/events/a')
    await post(server, '/publish/a', '')
    await stream.waitFor((events) => events.length === 2)
    expect(stream.events[1]?.data).toBe('')
  })
})

describe('a publish that is rejected', () => {
  const deep = `{"channel":"a","data":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
  const nested = (levels: number) => `{"channel":"a","data":${'{"x":'.repeat(levels)}1${'}'.repeat(levels)}}`
  test.each([
    ['a bad channel', '/publish/a//b', 'x', 400, 'invalid-channel'],
    ['a channel that is no UTF-8', '/publish/%ff', 'x', 400, 'invalid-channel'],
    ['a pattern as channel', '/publish/a*', 'x', 400, 'invalid-channel'],
    ['a reserved type', '/publish/a?type=hello', 'x', 400, 'invalid-type'],
    ['a type with a line break', '/publish/a?type=x%0Aid:%201', 'x', 400, 'invalid-type'],
    ['an empty type', '/publish/a?type=', 'x', 400, 'invalid-type'],
    ['a body that is not JSON', '/publish', 'x', 400, 'invalid-event'],
    ['an envelope that is no object', '/publish', '"x"', 400, 'invalid-event'],
    ['an envelope without channel', '/publish', '{"data":1}', 400, 'invalid-event'],
    ['an envelope without data', '/publish', '{"channel":"a"}', 400, 'invalid-event'],
    ['an envelope with data and text', '/publish', '{"channel":"a","data":1,"text":"x"}', 400, 'invalid-event'],
    ['an envelope with a misspelt key', '/publish', '{"channel":"a","dta":1,"data":1}', 400, 'invalid-event'],
    ['an envelope with a bad type', '/publish', '{"channel":"a","type":7,"data":1}', 400, 'invalid-event'],
    ['an envelope with __proto__', '/publish', '{"channel":"a","data":1,"__proto__":{}}', 400, 'invalid-event'],
    ['data too deep to write', '/publish', deep, 400, 'invalid-data'],
    ['objects in objects, too deep', '/publish', nested(100), 400, 'invalid-data'],
    ['an empty batch', '/publish', '[]', 400, 'invalid-event'],
    [
      'a batch with one bad event',
      '/publish',
      '[{"channel":"a","data":1},{"channel":"","data":1}]',
      400,
      'invalid-channel',
    ],
    ['a batch of too many', '/publish', `[${Array(1001).fill('{"channel":"a","data":1}')}]`, 413, 'too-large'],
    ['a body over 256 KiB', '/publish/a', 'x'.repeat(256 * 1024 + 1), 413, 'too-large'],
    ['text that is no UTF-8', '/publish/a', Uint8Array.of(0x61, 0xff), 400, 'invalid-data'],
    ['a surrogate in UTF-8', '/publish/a', Uint8Array.of(0xed, 0xa0, 0x80), 400, 'invalid-data'],
  ])('%s is answered with a code and advice, and appends nothing (§5.7)', async (_what, path, body, status, code) => {
    const server = await serveHub()
    const stream = await listen(server, '/events/a')
    const answer = await post(server, path, body)
    expect([answer.status, answer.body.error?.code]).toEqual([status, code])
    expect(answer.body.error.message.length).toBeGreaterThan(20)
    const { id } = await server.hub.publish('a', { data: 'next' })
    await stream.waitFor((events) => events.length === 2)
    expect(stream.events[1]?.id).toBe(id)
  })

  test.each([
    ['arrays', '['.repeat(130_000) + ']'.repeat(130_000)],
    ['objects', `${'{"x":'.repeat(101)}1${'}'.repeat(101)}`],
    ['arrays behind a text that looks like their end', `${'["]]]\\"",'.repeat(101)}1${']'.repeat(101)}`],
  ])('%s nested too deep are rejected as the whole body of an event, too (§5.1)', async (_, body) => {
    const headers = { 'content-type': 'application/json' }
    for (const path of ['/publish/a', '/publish']) {
      const server = await serveHub({ defaultChannel: 'a' })
      const response = await fetch(server.url(path), { method: 'POST', body, headers })
      expect([response.status, (await response.json()).error.code]).toEqual([400, 'invalid-data'])
      const asText = await fetch(server.url(path), { method: 'POST', body, headers: { 'content-type': 'text/plain' } })
      expect(asText.status).toBe(201)
    }
  })

  test('data of a program that is nested too deep to be written is rejected with a code', async () => {
    const { hub } = await serveHub()
    let data: unknown = 1
    for (let level = 0; level < 130_000; level += 1) data = [data]
    await expect(hub.publish('a', { data } as Message)).rejects.toMatchObject({ code: 'invalid-data' })
  })

  test('data nested a hundred levels deep is published, in either form', async () => {
    const server = await serveHub()
    const deepest = '['.repeat(100) + ']'.repeat(100)
    const headers = { 'content-type': 'application/json' }
    expect((await fetch(server.url('/publish/a'), { method: 'POST', body: deepest, headers })).status).toBe(201)
    const data = deepest.slice(1, -1)
    expect((await post(server, '/publish', `{"channel":"a","data":${data}}`)).status).toBe(201)
  })

  test('a body that is not JSON is answered with what is wrong in it', async () => {
    const { body } = await post(await serveHub(), '/publish', '{"channel":"a" "data":1}')
    expect(body.error.message).toMatch(/^The body is not JSON: expected ',' or '}' after property value at position 15/)
  })

  test('a body without an end is rejected once it is over the limit, without being kept', async () => {
    const server = await serveHub()
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
    const head = 'POST /publish/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
    const answer = await server.raw(head + chunk.repeat(5), /too-large/)
    expect(answer).toMatch(/^HTTP\/1.1 413/)
  })

  test('a publisher that vanishes in the middle of its body appends nothing and harms nobody', async () => {
    const server = await serveHub()
    const stream = await listen(server, '/events/a')
    const socket = connect(server.port, '127.0.0.1')
    await new Promise<void>((sent) => {
      socket.write('POST /publish/a HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\npart', () => sent())
    })
    await new Promise((closed) => socket.once('close', closed).resetAndDestroy())
    const { id } = await server.hub.publish('a', { data: 'next' })
    await stream.waitFor((events) => events.length === 2)
    expect(stream.events[1]?.id).toBe(id)
  })
})
