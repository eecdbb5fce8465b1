import { createHash } from 'node:crypto'
import { generateKeyPair } from 'jose'
import { expect, test } from 'vitest'
import { jsonLines } from '../../src/logging/json-lines.ts'
import { terminal } from '../../src/logging/terminal.ts'
import { open, send, until } from '../support/http.ts'
import { guarded, secret, token } from './guarded.ts'

test('no log line and no answer holds a secret, a token, a key, a cookie or a ticket', async () => {
  const key = 'rk_2v8XqLw9ZtB4nHc7JmYs1Kd6Fp3Gr5Ae'
  const sha256 = createHash('sha256').update(key).digest('hex')
  const everything = { subscribe: ['*'], publish: ['*'] }
  const { url, hub, access } = await guarded({
    jwt: [{ secret }, { jwks: 'http://127.0.0.1:1/keys', issuer: 'a', audience: 'b' }],
    keys: [{ name: 'app', sha256, ...everything }],
    cookie: 'rejoin',
  })
  let written = ''
  const write = (text: string) => {
    written += text
  }
  jsonLines({ write }).watch(hub)
  terminal({ write, colour: false, now: Date.now }).watch(hub)

  const good = await token({ exp: Date.now() / 1000 + 600, rejoin: everything })
  const expired = await token({ exp: 1 })
  const { privateKey } = await generateKeyPair('ES256')
  const unchecked = await token({ iss: 'a', aud: 'b' }, privateKey, { alg: 'ES256' })
  const bearer = (text: string) => ({ authorization: `Bearer ${text}` })
  const { ticket } = JSON.parse((await send(url, '/ticket', { method: 'POST', headers: bearer(good) })).text)
  const secrets = [secret, key, good, expired, unchecked, ticket, sha256]

  const stream = await open(url, `/events/a?ticket=${ticket}`, { headers: { 'user-agent': 'test' } })
  await until(stream, 'event: hello')
  for (const headers of [...[good, key, expired, unchecked].map(bearer), { cookie: `rejoin=${key}` }]) {
    const published = await send(url, '/publish/a', { method: 'POST', headers: { ...headers, origin: url }, body: 'x' })
    const polled = await send(url, `/poll/a?lastEventId=nonsense&waitMs=0`, { headers })
    written += published.text + polled.text
  }
  written += (await send(url, `/events/a?ticket=${ticket}`)).text
  access.revoke('alice')
  hub.revoke('alice')
  written += (await send(url, '/poll/a', { headers: bearer(good) })).text

  expect(written).toContain('sse_connect')
  expect(written).toContain('token-expired')
  expect(written).toContain('taken back')
  expect(written).toContain('unreachable')
  for (const each of secrets) expect(written).not.toContain(each)
  // Nor a part that gives it away.
  for (const each of secrets) expect(written).not.toContain(each.slice(0, 24))
})
