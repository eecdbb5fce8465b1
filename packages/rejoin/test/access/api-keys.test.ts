import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createAccess } from '../../src/access/access.ts'
import type { ApiKeyRule } from '../../src/access/rules.ts'
import { send } from '../support/http.ts'
import { guarded, secret, token, verdict } from './guarded.ts'

const key = 'rk_2v8XqLw9ZtB4nHc7JmYs1Kd6Fp3Gr5Ae'
const rule: ApiKeyRule = { name: 'billing', sha256: sha256(key), subscribe: ['orders/*'], publish: ['orders/*'] }

test('an API key gives what the rules say, and is known by its hash alone', async () => {
  const access = createAccess({ keys: [{ ...rule, name: 'other', sha256: sha256(`${key}x`) }, rule] })
  expect(await verdict(access, { authorization: `Bearer ${key}` })).toEqual({
    subject: 'key:billing',
    subscribe: ['orders/*'],
    publish: ['orders/*'],
  })
  expect(await verdict(access, { authorization: `Bearer ${rule.sha256}` })).toMatch(/^unauthorized/)
})

test('keys and tokens can be used side by side', async () => {
  const { url } = await guarded({ keys: [rule], jwt: [{ secret }] })
  const text = await token({ exp: Date.now() / 1000 + 60, rejoin: { publish: ['orders/*'] } })
  for (const good of [key, text]) {
    const headers = { authorization: `Bearer ${good}` }
    expect((await send(url, '/publish/orders/1', { method: 'POST', headers, body: 'x' })).status).toBe(201)
    expect((await send(url, '/publish/secret', { method: 'POST', headers, body: 'x' })).status).toBe(403)
  }
})

test.each([key.slice(0, -1), `${key}a`, key.toUpperCase(), 'short'])('%s is not the key', async (other) => {
  expect(await verdict(createAccess({ keys: [rule] }), { authorization: `Bearer ${other}` })).toMatch(/^unauthorized/)
})

test('a key short enough to be guessed is no key, although its hash is in the rules', async () => {
  const access = createAccess({ keys: [{ ...rule, sha256: sha256('hunter2') }] })
  expect(await verdict(access, { authorization: 'Bearer hunter2' })).toMatch(/^unauthorized/)
})

describe('rejected at the start', () => {
  test.each([
    ['a key in place of its hash', { ...rule, sha256: key }, 'sha256sum'],
    ['a name with a space', { ...rule, name: 'a b' }, 'named'],
    ['a right that is spelt wrong', { ...rule, publish: ['/orders'] }, 'empty segment'],
  ])('%s', (_what, wrong, message) => {
    expect(() => createAccess({ keys: [wrong] })).toThrow(message)
    expect(() => createAccess({ keys: [wrong] })).toThrow(expect.not.stringContaining(key))
  })

  test('two keys of one name', () => {
    expect(() => createAccess({ keys: [rule, rule] })).toThrow('same name')
  })
})

test('secrets are compared by their digests and in constant time', async () => {
  const source = await readFile(new URL('../../src/access/api-keys.ts', import.meta.url), 'utf8')
  expect(source).toContain('timingSafeEqual(sha256, presented)')
  expect(source).not.toMatch(/(?:sha256|digest|presented) ?[!=]==? /)
  const ofAdmins = await readFile(new URL('../../src/admin/admin-guard.ts', import.meta.url), 'utf8')
  expect(ofAdmins).toContain('timingSafeEqual(digestOf(sent), expected)')
  expect(ofAdmins).not.toMatch(/(?:token|sent|expected) ?[!=]==? (?!undefined)/)
})

describe('a request with bad credentials is not taken for an anonymous one', () => {
  const access = createAccess({ keys: [rule], cookie: 'rejoin', anonymous: { subscribe: ['public/*'] } })

  test('an anonymous request has the anonymous rights of the rules, and no others', async () => {
    expect(await verdict(access, {})).toEqual({ subject: null, subscribe: ['public/*'], publish: [] })
    expect(await verdict(createAccess({ keys: [rule] }), {})).toBeNull()
    expect(await verdict(createAccess({ anonymous: {} }), {})).toBeNull()
  })

  test.each([
    { authorization: '' },
    { authorization: 'Bearer' },
    { authorization: 'Bearer ' },
    { authorization: `Bearer ${key} ${key}` },
    { authorization: `Bearer ${key}, Bearer ${key}` },
    { authorization: `Basic ${key}` },
    { authorization: key },
    { authorization: 'Bearer null' },
    { authorization: 'Bearer undefined' },
    { cookie: 'rejoin=x' },
    { cookie: `rejoin=x; rejoin=${key}` },
    { cookie: `a=b; rejoin=${key}x` },
    { authorization: 'Bearer x', cookie: `rejoin=${key}` },
  ])('%j', async (headers) => {
    expect(await verdict(access, headers)).toMatch(/^unauthorized/)
  })

  test.each(['?ticket=', '?ticket=x', '?a=b&ticket=x', '?ticket=x&ticket=y'])('%s', async (query) => {
    expect(await verdict(access, {}, `/events/public/1${query}`)).toMatch(/^unauthorized/)
  })

  test.each([
    [{ cookie: 'rejoin=' }, null],
    [{ cookie: 'rejoinx=1; xrejoin=2' }, null],
    [{ cookie: `rejoin=${key}` }, 'key:billing'],
    [{ cookie: `a=b;  rejoin=${key} ;c` }, 'key:billing'],
    [{ authorization: `bearer  ${key}` }, 'key:billing'],
  ])('%j is %s', async (headers, subject) => {
    expect(await verdict(access, headers)).toMatchObject({ subject })
  })

  test('a cookie is not read where none is named', async () => {
    const plain = createAccess({ keys: [rule], anonymous: { subscribe: ['public/*'] } })
    expect(await verdict(plain, { cookie: `rejoin=${key}` })).toMatchObject({ subject: null })
  })

  test('over HTTP', async () => {
    const { url } = await guarded({ keys: [rule], anonymous: { subscribe: ['public/*'] } })
    const wrong = await send(url, '/events/public/1', { headers: { authorization: 'Bearer x' } })
    expect(wrong.status).toBe(401)
    expect(JSON.parse(wrong.text).error.code).toBe('unauthorized')
  })

  test('a request without credentials is asked for a token; a request with a token that gives no right is rejected (§7.2)', async () => {
    const { url } = await guarded({ keys: [rule], anonymous: { subscribe: ['public/*'] } })
    const post = { method: 'POST', body: 'x' }
    for (const [path, options] of [
      ['/events/orders/1', {}],
      ['/poll/orders/1', {}],
      ['/publish/public/1', post],
      ['/publish', post],
      ['/end/public/1', post],
    ] as const) {
      const nobody = await send(url, path, options)
      expect([path, nobody.status, nobody.headers['www-authenticate']]).toEqual([path, 401, 'Bearer'])
    }
    const known = { authorization: `Bearer ${key}` }
    expect((await send(url, '/events/secret', { headers: known })).status).toBe(403)
    expect((await send(url, '/publish/secret', { ...post, headers: known })).status).toBe(403)
  })
})

test('whatever a request presents, it gets rights or a reason', async () => {
  const access = createAccess({ keys: [rule], jwt: [{ secret }], cookie: 'rejoin' })
  // Lone surrogates among them. The library's own unit for that takes seconds to set up.
  const anyUnits = fc.array(fc.nat(0xffff)).map((units) => String.fromCharCode(...units))
  const text = fc.oneof(
    fc.string(),
    anyUnits,
    fc.base64String().map((part) => `a.${part}.b`),
  )
  const headers = fc.oneof(
    text.map((value) => ({ authorization: `Bearer ${value}` })),
    text.map((authorization) => ({ authorization })),
    text.map((cookie) => ({ cookie })),
    text.map((value) => ({ cookie: `rejoin=${value}` })),
  )
  await fc.assert(
    fc.asyncProperty(headers, text, async (sent, query) => {
      const result = await verdict(access, sent, `/events/a?ticket=${query}`)
      if (result !== null) expect(result).toMatch(/^unauthorized: /)
    }),
  )
})

test('text that looks like a ticket in the name of a channel is no ticket', async () => {
  const open = createAccess({ anonymous: { subscribe: ['*'] } })
  expect(await verdict(open, {}, '/events/a&ticket=1')).toMatchObject({ subscribe: ['*'] })
})

test('a channel that exists and one that does not are rejected in the same words', async () => {
  const { url, hub } = await guarded({ keys: [{ ...rule, publish: [] }] })
  await hub.publish('secret/real', { data: 1 })
  const headers = { authorization: `Bearer ${key}` }
  const answers = []
  for (const channel of ['secret/real', 'secret/not']) {
    for (const [method, path] of [
      ['GET', '/events/'],
      ['GET', '/poll/'],
      ['POST', '/publish/'],
    ] as const) {
      const { status, text } = await send(url, path + channel, {
        method,
        headers,
        ...(method === 'POST' ? { body: 'x' } : {}),
      })
      answers.push(`${status} ${text}`)
    }
  }
  expect(new Set(answers).size).toBe(1)
  expect(answers[0]).toMatch(/^403 /)
})

test.each([
  [{ cookie: 'a b' }, 'cookie'],
  [{ cookie: '' }, 'cookie'],
  [{ ticketMs: 60_001 }, '1000 to 60000'],
  [{ ticketMs: 0 }, '1000 to 60000'],
  [{ ticketMs: Number.NaN }, '1000 to 60000'],
  [{ anonymous: { subscribe: ['public/**'] } }, 'public/**'],
])('the rules %j are rejected at the start', (rules, message) => {
  expect(() => createAccess(rules)).toThrow(message)
})

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
