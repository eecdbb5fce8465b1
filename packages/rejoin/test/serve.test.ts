import { once } from 'node:events'
import { connect } from 'node:net'
import { RejoinError } from '@rejoin/protocol'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createServer } from '../src/http/http-server.ts'
import { listen } from '../src/http/listen.ts'
import { serve } from '../src/serve.ts'
import { version } from '../src/version.ts'
import { open, send, serving, until } from './support/http.ts'

test('rejoin serve answers 200 under /healthz', async () => {
  const { url } = await serving()
  const { status, headers, text } = await send(url, '/healthz')
  expect(status).toBe(200)
  expect(headers['content-type']).toBe('application/json; charset=utf-8')
  expect(JSON.parse(text)).toEqual({ status: 'ok', version })
})

test('a reader that comes back with the last id it saw gets what it missed', async () => {
  const { url } = await serving()
  const first = await open(url, '/events/demo')
  await until(first, 'event: hello')
  const { id } = await publish(url, 'one')
  await until(first, 'data: one')
  first.destroy()
  await publish(url, 'two')
  const second = await open(url, '/events/demo', { headers: { 'last-event-id': id } })
  const replayed = await until(second, 'data: two')
  expect(replayed).toContain('"resumed":true')
  expect(replayed).not.toContain('data: one')
})

test('an unknown path is answered with advice', async () => {
  const { url } = await serving()
  const { status, text } = await send(url, '/nothing')
  expect(status).toBe(404)
  expect(JSON.parse(text).error.code).toBe('not-found')
})

test('a request for the dashboard or the metrics where they are off is told how to open them', async () => {
  const { url } = await serving()
  for (const path of ['/dashboard', '/metrics']) {
    const { status, text } = await send(url, path)
    expect([status, JSON.parse(text).error.message]).toEqual([404, expect.stringContaining('--admin-port 4748')])
  }
})

test('a request for the metrics without the admin token is told to show it', async () => {
  const { url } = await serving({ admin: { token: 'a token of sixteen' } })
  const { status, text } = await send(url, '/metrics')
  expect([status, JSON.parse(text).error.message]).toEqual([404, expect.stringContaining('Show the admin token')])
})

test('a port that is taken is named, and the hub that could not start leaves nothing behind', async () => {
  const { url } = await serving()
  const port = Number(new URL(url).port)
  await expect(serve({ port })).rejects.toThrow(
    expect.objectContaining({ code: 'address-in-use', message: expect.stringContaining(`Port ${port} of 127.0.0.1`) }),
  )
})

describe('beyond this machine', () => {
  test.each(['0.0.0.0', '::'])('it does not listen on %s, because there are no access rules', async (host) => {
    await expect(serve({ port: 0, host })).rejects.toThrow(
      expect.objectContaining({ code: 'invalid-option', message: expect.stringContaining('--insecure') }),
    )
  })

  test('it listens when that is insisted on, and then takes any Host and Origin', async () => {
    const { url } = await serving({ host: '0.0.0.0', insecure: true })
    const headers = { host: 'example.com', origin: 'http://example.com' }
    const { status } = await send(url, '/publish/demo', { method: 'POST', headers, body: 'hello' })
    expect(status).toBe(201)
  })

  test('insisting changes nothing on loopback', async () => {
    const { url } = await serving({ insecure: true })
    expect((await send(url, '/healthz', { headers: { host: 'example.com' } })).status).toBe(403)
  })
})

test('a host that has no address is rejected with advice', async () => {
  await expect(serve({ port: 0, host: 'no such host' })).rejects.toThrow(RejoinError)
})

test('an IPv6 address is written so that it can be used', async () => {
  const { url } = await serving({ host: '::1' })
  expect(url).toMatch(/^http:\/\/\[::1\]:\d+$/)
  expect((await send(url, '/healthz')).status).toBe(200)
})

test('a connection that never asked for anything does not hold up the end', async () => {
  // The deadline after which every connection is ended never comes.
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const { server, close } = createServer({ onReject: () => undefined }, () => undefined)
  const port = await listen(server, { address: '127.0.0.1', port: 0 })
  const ahead = connect(port, '127.0.0.1')
  await Promise.all([once(server, 'connection'), once(ahead, 'connect')])
  const ended = once(ahead.resume(), 'close')
  await close()
  await ended
})

describe('whatever a client sends, the next one is served', () => {
  test.each([
    ['a target that is no path', 'GET // HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['a target of another server', 'GET http://example.com/ HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['a broken escape', 'GET /events/%E0%A4%A HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['a broken escape in the query', 'GET /playground/plain?tab=%ff&n=% HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['a method of its own', 'BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['CONNECT', 'CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['an upgrade', 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'],
    ['no Host', 'GET / HTTP/1.1\r\n\r\n'],
    ['HTTP/1.0 without Host', 'GET / HTTP/1.0\r\n\r\n'],
    ['a body that ends early', 'POST /publish/demo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab'],
    ['a broken chunk', 'POST /publish/demo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'],
    ['too many headers', `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(70_000)}\r\n\r\n`],
    ['something that is not HTTP', '\x16\x03\x01\x00\xff\x00\r\n\r\n'],
  ])('%s', async (_what, bytes) => {
    const { url } = await serving()
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    // An answer, an end or a reset: what it gets is not the point.
    socket.on('error', () => socket.destroy())
    socket.end(bytes, 'latin1')
    socket.resume()
    await new Promise((closed) => socket.once('close', closed))
    expect((await send(url, '/healthz')).status).toBe(200)
  })
})

test('closing ends the streams in order', async () => {
  const { url, close } = await serve({ port: 0 })
  const rejoin = await open(url, '/events/demo')
  const plain = await open(url, '/playground/plain?tab=aaaaaaaa')
  const ended = Promise.all([rejoin, plain].map((stream) => once(stream.resume(), 'end')))
  await close()
  await ended
})

async function publish(url: string, body: string): Promise<{ id: string }> {
  const { status, text } = await send(url, '/publish/demo', { method: 'POST', body })
  expect(status).toBe(201)
  return JSON.parse(text)
}
