import { describe, expect, test } from 'vitest'
import { isLoopbackAddress, isLoopbackHost, isLoopbackOrigin } from '../../src/access/hosts.ts'
import { open, send, serving, until } from '../support/http.ts'

describe('a request is taken for one to this machine when its Host is', () => {
  test.each(['localhost', 'localhost:4747', 'LOCALHOST', 'app.localhost:4747', 'a.b.localhost'])('%s', (host) => {
    expect(isLoopbackHost(host)).toBe(true)
  })
  test.each(['127.0.0.1', '127.0.0.1:4747', '127.255.255.254', '[::1]', '[::1]:4747'])('%s', (host) => {
    expect(isLoopbackHost(host)).toBe(true)
  })
})

describe('a request is rejected when its Host is', () => {
  test.each([
    undefined,
    '',
    'example.com',
    'example.com:4747',
    'localhost.example.com',
    'notlocalhost',
    '.localhost',
    'localhost.',
    'localhost:',
    'localhost:port',
    'user@localhost',
    'localhost/path',
    '127.0.0.1.example.com',
    '127.0.0.256',
    '127.0.0.01',
    '127.1',
    '126.0.0.1',
    '0.0.0.0',
    '192.168.0.1',
    '::1',
    '[::]',
    '[::2]:4747',
    '[127.0.0.1]',
  ])('%s', (host) => {
    expect(isLoopbackHost(host)).toBe(false)
  })
})

test.each([
  ['http://localhost', true],
  ['http://localhost:3000', true],
  ['https://app.localhost:8443', true],
  ['http://127.0.0.1:4747', true],
  ['http://[::1]:4747', true],
  ['null', false],
  ['', false],
  ['http://example.com', false],
  ['http://localhost.example.com', false],
  ['http://localhost@example.com', false],
  ['http://localhost:3000/', false],
  ['http://localhost, http://example.com', false],
  ['file://localhost', false],
  ['localhost', false],
])('the origin %s is of this machine: %s', (origin, expected) => {
  expect(isLoopbackOrigin(origin)).toBe(expected)
})

test.each([
  ['127.0.0.1', true],
  ['127.8.9.10', true],
  ['::1', true],
  ['0.0.0.0', false],
  ['::', false],
  ['10.0.0.1', false],
  ['127.0.0.1.example.com', false],
])('listening on %s stays on this machine: %s', (address, expected) => {
  expect(isLoopbackAddress(address)).toBe(expected)
})

describe('a hub on this machine (§8)', () => {
  test.each(['/', '/healthz', '/events/demo', '/publish/demo', '/playground/plain?tab=aaaaaaaa', '/nothing'])(
    'rejects %s under a foreign name, as a page would use that was pointed at 127.0.0.1 later',
    async (path) => {
      const { url } = await serving()
      const { status, headers, text } = await send(url, path, { headers: { host: 'example.com' } })
      expect(status).toBe(403)
      expect(headers['access-control-allow-origin']).toBeUndefined()
      expect(JSON.parse(text)).toEqual({
        error: { code: 'forbidden', message: expect.stringContaining('not as "example.com"') },
      })
    },
  )

  test.each(['http://example.com', 'null'])('rejects a publish from a page of %s', async (origin) => {
    const { url, hub } = await serving()
    let published = 0
    hub.on('publish', () => published++)
    const { status, text } = await send(url, '/publish/demo', { method: 'POST', headers: { origin }, body: 'hello' })
    expect(status).toBe(403)
    expect(JSON.parse(text).error.code).toBe('forbidden')
    expect(published).toBe(0)
  })

  test('rejects the preflight of a foreign page', async () => {
    const { url } = await serving()
    const { status, headers } = await send(url, '/publish/demo', preflight('http://example.com'))
    expect(status).toBe(403)
    expect(headers['access-control-allow-origin']).toBeUndefined()
  })

  test('answers the preflight of a page on another port of this machine', async () => {
    const { url } = await serving()
    const { status, headers, text } = await send(url, '/events/demo', preflight('http://localhost:3000'))
    expect(status).toBe(204)
    expect(text).toBe('')
    expect(headers).toMatchObject({
      'access-control-allow-origin': 'http://localhost:3000',
      'access-control-allow-methods': 'GET, POST, DELETE',
      'access-control-allow-headers': 'Last-Event-ID, Content-Type, Authorization, Cache-Control, Idempotency-Key',
      'access-control-max-age': '600',
      vary: 'Origin',
    })
  })

  test('lets a page on another port read a stream and publish', async () => {
    const { url } = await serving()
    const headers = { origin: 'http://localhost:3000' }
    const stream = await open(url, '/events/demo', { headers })
    expect(stream.headers['access-control-allow-origin']).toBe('http://localhost:3000')
    expect(stream.headers.vary).toContain('Origin')
    await until(stream, 'event: hello')
    const published = await send(url, '/publish/demo', { method: 'POST', headers, body: 'hello' })
    expect(published.status).toBe(201)
    expect(published.headers['access-control-allow-origin']).toBe('http://localhost:3000')
    await until(stream, 'data: hello')
  })

  test('asks nothing of a client that is not a page', async () => {
    const { url } = await serving()
    const { status, headers } = await send(url, '/healthz')
    expect(status).toBe(200)
    expect(headers['access-control-allow-origin']).toBeUndefined()
  })
})

function preflight(origin: string) {
  return {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'GET', 'access-control-request-headers': 'last-event-id' },
  }
}
