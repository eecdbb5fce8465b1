import { createHash } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { describe, expect, test } from 'vitest'
import { createAccess } from '../../src/access/access.ts'
import { open, send, until } from '../support/http.ts'
import { guarded } from './guarded.ts'

const key = 'rk_2v8XqLw9ZtB4nHc7JmYs1Kd6Fp3Gr5Ae'
const sha256 = createHash('sha256').update(key).digest('hex')
const everything = { subscribe: ['*'], publish: ['*'] }
const rules = { keys: [{ name: 'app', sha256, ...everything }], cookie: 'rejoin', anonymous: everything }

const carriers = {
  nothing: {},
  token: { authorization: `Bearer ${key}` },
  cookie: { cookie: `rejoin=${key}` },
}

// Columns: origin of the page; what it sends; status of a publish; status of a poll; whether the page may read the answer,
// and whether with cookies.
describe('with https://app.example listed', () => {
  test.each([
    ['none', 'nothing', 201, 200, undefined, undefined],
    ['none', 'token', 201, 200, undefined, undefined],
    ['none', 'cookie', 403, 200, undefined, undefined],
    ['own', 'nothing', 201, 200, undefined, undefined],
    ['own', 'token', 201, 200, undefined, undefined],
    ['own', 'cookie', 201, 200, undefined, undefined],
    ['https://app.example', 'nothing', 201, 200, 'https://app.example', 'true'],
    ['https://app.example', 'token', 201, 200, 'https://app.example', 'true'],
    ['https://app.example', 'cookie', 201, 200, 'https://app.example', 'true'],
    ['https://evil.example', 'nothing', 403, 403, undefined, undefined],
    ['https://evil.example', 'token', 201, 200, undefined, undefined],
    ['https://evil.example', 'cookie', 403, 403, undefined, undefined],
    ['http://app.example', 'cookie', 403, 403, undefined, undefined],
    ['https://app.example:8443', 'cookie', 403, 403, undefined, undefined],
    ['https://app.example.evil.example', 'cookie', 403, 403, undefined, undefined],
    ['https://evilapp.example', 'cookie', 403, 403, undefined, undefined],
    ['null', 'cookie', 403, 403, undefined, undefined],
    ['null', 'nothing', 403, 403, undefined, undefined],
    ['', 'cookie', 403, 403, undefined, undefined],
  ] as const)('%s, by %s: publish %s, poll %s', async (origin, carrier, publish, poll, readable, withCookies) => {
    const { url } = await guarded({ ...rules, cors: ['https://app.example'] })
    await check(url, headersOf(url, origin, carrier), { publish, poll, readable, withCookies })
  })
})

describe('with any page allowed', () => {
  test.each([
    ['https://any.example', 'nothing', 201, 200, '*', undefined],
    ['https://any.example', 'token', 201, 200, '*', undefined],
    ['https://any.example', 'cookie', 403, 403, '*', undefined],
    ['null', 'nothing', 201, 200, '*', undefined],
    ['https://app.example', 'cookie', 201, 200, 'https://app.example', 'true'],
  ] as const)('%s, by %s: publish %s, poll %s', async (origin, carrier, publish, poll, readable, withCookies) => {
    const { url } = await guarded({ ...rules, cors: ['*', 'https://app.example'] })
    await check(url, headersOf(url, origin, carrier), { publish, poll, readable, withCookies })
  })
})

describe('a publish by cookie without an Origin goes by its Referer', () => {
  test.each([
    ['https://app.example/page?x=1', 201],
    ['https://evil.example/https://app.example', 403],
    ['https://app.example.evil.example/', 403],
    ['no address', 403],
    ['', 403],
  ])('%s: %s', async (referer, status) => {
    const { url } = await guarded({ ...rules, cors: ['https://app.example'] })
    const headers = { ...carriers.cookie, referer }
    expect((await send(url, '/publish/a', { method: 'POST', headers, body: 'x' })).status).toBe(status)
  })

  test('a rejection names the page that may not publish, or asks for Origin or Referer', async () => {
    const { url } = await guarded({ ...rules, cors: ['https://app.example'] })
    const rejectionFor = async (headers: Record<string, string>) => {
      const { text } = await send(url, '/publish/a', {
        method: 'POST',
        headers: { ...carriers.cookie, ...headers },
        body: 'x',
      })
      return JSON.parse(text).error.message
    }
    expect(await rejectionFor({ referer: 'https://evil.example/https://app.example' })).toContain(
      'Pages of "https://evil.example" may not',
    )
    expect(await rejectionFor({})).toContain('neither Origin nor Referer')
  })

  test('a good Referer does not make up for a foreign Origin', async () => {
    const { url } = await guarded({ ...rules, cors: ['https://app.example'] })
    const headers = { ...carriers.cookie, origin: 'null', referer: 'https://app.example/' }
    expect((await send(url, '/publish/a', { method: 'POST', headers, body: 'x' })).status).toBe(403)
  })
})

describe('over TLS and HTTP/2, a page of its own comes from the same name by https', () => {
  test.each([
    [{ ':authority': 'hub.example' }, 'https://hub.example', true],
    [{ host: 'hub.example' }, 'https://hub.example', true],
    [{ host: 'HUB.example:8443' }, 'https://hub.example:8443', true],
    [{ host: 'hub.example' }, 'http://hub.example', false],
    [{ host: 'hub.example' }, 'https://hub.example:8443', false],
    [{ host: 'hub.example' }, 'https://hub.example@evil.example', false],
    [{ host: 'hub.example' }, 'https://evil.example/hub.example', false],
    [{}, 'https://undefined', false],
  ])('%j, %s: %s', (host, origin, isLetIn) => {
    const request = { method: 'POST', url: '/publish/a', headers: { ...host, ...carriers.cookie, origin } }
    const response = Object.assign(new EventEmitter(), {
      ...{ setHeader: () => undefined, writeHead: () => undefined, end: () => undefined, req: request },
    })
    const { middleware } = createAccess(rules)
    expect(middleware({ ...request, socket: { encrypted: true } } as never, response as never)).toBe(!isLetIn)
  })
})

test.each(['?x=ticket=1', '?ticket', '?%74icket=1'])(
  'an address that only looks as if it had a ticket (%s) does not get a foreign page in by cookie',
  async (query) => {
    const { url } = await guarded(rules)
    const headers = { ...carriers.cookie, origin: 'https://evil.example' }
    expect((await send(url, `/poll/a${query}`, { headers })).status).toBe(403)
  },
)

test('a foreign page gets no ticket by cookie', async () => {
  const { url } = await guarded(rules)
  const ask = (origin: string) => send(url, '/ticket', { method: 'POST', headers: { ...carriers.cookie, origin } })
  expect((await ask('https://evil.example')).status).toBe(403)
  expect((await ask(url)).status).toBe(201)
})

describe('preflights', () => {
  test.each([
    ['https://app.example', 204, 'https://app.example', 'true'],
    ['https://evil.example', 403, undefined, undefined],
    ['null', 403, undefined, undefined],
  ])('%s: %s', async (origin, status, readable, withCookies) => {
    const { url } = await guarded({ ...rules, cors: ['https://app.example'] })
    const answer = await send(url, '/events/a', preflight(origin))
    expect(answer.status).toBe(status)
    expect(answer.headers['access-control-allow-origin']).toBe(readable)
    expect(answer.headers['access-control-allow-credentials']).toBe(withCookies)
    expect(answer.headers.vary).toContain('Origin')
    if (status !== 204) return
    for (const header of ['Last-Event-ID', 'Authorization', 'Cache-Control', 'Content-Type', 'Idempotency-Key']) {
      expect(answer.headers['access-control-allow-headers']).toContain(header)
    }
    expect(answer.headers['access-control-max-age']).toBe('600')
  })

  test('of any page, never with cookies', async () => {
    const { url } = await guarded({ ...rules, cors: ['*'] })
    const { status, headers } = await send(url, '/publish/a', preflight('https://any.example'))
    expect(status).toBe(204)
    expect(headers['access-control-allow-origin']).toBe('*')
    expect(headers['access-control-allow-credentials']).toBeUndefined()
  })
})

test('where no cookie is read, none is asked for', async () => {
  const { url } = await guarded({ keys: rules.keys, cors: ['https://app.example'] })
  const headers = { ...carriers.token, origin: 'https://app.example' }
  expect((await send(url, '/poll/a', { headers })).headers['access-control-allow-credentials']).toBeUndefined()
})

test('a page reads a stream, its rejections and when to come back', async () => {
  const { url } = await guarded({ keys: rules.keys, cors: ['https://app.example'] })
  const origin = 'https://app.example'
  const stream = await open(url, '/events/a', { headers: { ...carriers.token, origin } })
  await until(stream, 'event: hello')
  expect(stream.headers['access-control-allow-origin']).toBe(origin)
  expect(stream.headers['access-control-expose-headers']).toContain('Retry-After')
  expect(stream.headers.vary).toContain('Origin')
  expect(stream.headers['cache-control']).toContain('private')
  const rejected = await send(url, '/events/a', { headers: { origin } })
  expect(rejected.status).toBe(401)
  expect(rejected.headers['access-control-allow-origin']).toBe(origin)
})

test.each([
  'https://app.example/',
  'https://App.example',
  'app.example',
  'null',
  '',
  'https://*.example',
  'https://a b',
])('%j is rejected at the start, because no browser sends it', (origin) => {
  expect(() => createAccess({ ...rules, cors: [origin] })).toThrow('no origin of pages')
})

function headersOf(url: string, origin: string, carrier: keyof typeof carriers): Record<string, string> {
  const from = origin === 'own' ? url : origin
  return { ...carriers[carrier], ...(origin === 'none' ? {} : { origin: from }) }
}

interface Expected {
  publish: number
  poll: number
  readable: string | undefined
  withCookies: string | undefined
}

async function check(url: string, headers: Record<string, string>, expected: Expected): Promise<void> {
  const published = await send(url, '/publish/a', { method: 'POST', headers, body: 'x' })
  const polled = await send(url, '/poll/a', { headers })
  expect([published.status, polled.status]).toEqual([expected.publish, expected.poll])
  for (const answer of [published, polled]) {
    expect(answer.headers['access-control-allow-origin']).toBe(expected.readable)
    expect(answer.headers['access-control-allow-credentials']).toBe(expected.withCookies)
  }
  expect(polled.headers.vary).toContain('Origin')
}

function preflight(origin: string) {
  return { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'POST' } }
}
