import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHub, type Grant } from '@rejoin/hub'
import { createSubscription } from '@rejoin/hub/internal'
import { memoryLog } from '@rejoin/hub/memory'
import { createVirtualEnvironment } from '@rejoin/hub/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { open, send, serving, until } from '../support/http.ts'
import { token } from './guarded.ts'

const inAnHour = () => Math.floor(Date.now() / 1000) + 3600

test('a stream ends within seconds when the key of its token is taken out of the key set, and others stay', async () => {
  const [taken, kept] = [keyPair('taken'), keyPair('kept')]
  const folder = mkdtempSync(join(tmpdir(), 'rejoin-keys-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const jwks = join(folder, 'keys.json')
  writeFileSync(jwks, JSON.stringify({ keys: [taken.jwk, kept.jwk] }))
  const rule = { jwks, issuer: 'https://issuer.example', audience: 'rejoin' }
  const { url } = await serving({ access: { jwt: [rule] } })
  const read = async ({ kid, key }: Pair) => {
    const claims = {
      iss: rule.issuer,
      aud: rule.audience,
      exp: inAnHour(),
      rejoin: { subscribe: ['*'], publish: ['*'] },
    }
    const authorization = `Bearer ${await token(claims, key, { alg: 'EdDSA', kid })}`
    const stream = await open(url, '/events/a', { headers: { authorization } })
    await until(stream, 'event: hello')
    return { stream, authorization }
  }
  const [ending, staying] = [await read(taken), await read(kept)]
  writeFileSync(jwks, JSON.stringify({ keys: [kept.jwk] }))
  expect(await until(ending.stream, 'event: close')).toContain('event: close')
  expect((await send(url, '/events/a', { headers: { authorization: ending.authorization } })).status).toBe(401)
  const sent = { method: 'POST', body: 'still here', headers: { authorization: staying.authorization } }
  expect((await send(url, '/publish/a', sent)).status).toBe(201)
  expect(await until(staying.stream, 'still here')).not.toContain('event: close')
})

const fromNow = { subscription: createSubscription(['a']), start: { from: 'now' } } as const

describe('hub.admin.renewRights', () => {
  test('asks again for all streams, spread, and ends those whose rights are gone (§7)', async () => {
    const environment = createVirtualEnvironment({ seed: 1 })
    const hub = await createHub({ log: memoryLog(), environment })
    const allowed = new Set(Array.from({ length: 100 }, (_, n) => `reader ${n}`))
    const asked: number[] = []
    const ended: string[] = []
    hub.on('close', ({ subject, reason }) => ended.push(`${subject} ${reason}`))
    for (const subject of allowed) {
      const grant: Grant = { subject, subscribe: ['a'] }
      const renew = async () => {
        asked.push(environment.now())
        return allowed.has(subject) ? grant : null
      }
      const reader = { ip: null, userAgent: null, subject }
      hub.port.subscribe({ kind: 'admitted', request: { ...fromNow, reader, rights: { grant, renew } } }, sink())
    }
    await environment.settle()
    for (const n of [3, 50]) allowed.delete(`reader ${n}`)
    const since = environment.now()
    hub.admin.renewRights({ withinMs: 4000 })
    await environment.settle()
    expect(asked.length).toBeLessThan(20)
    await environment.advance(4000)
    expect(asked).toHaveLength(100)
    expect(Math.max(...asked) - since).toBeGreaterThan(3000)
    expect(ended.sort()).toEqual(['reader 3 token-expired', 'reader 50 token-expired'])
    await hub.close()
  })

  test('holds for a reader whose rights were given before and who connects after', async () => {
    const environment = createVirtualEnvironment({ seed: 1 })
    const hub = await createHub({ log: memoryLog(), environment })
    const ended: string[] = []
    hub.on('close', ({ reason }) => ended.push(reason))
    const asOf = hub.port.revocations
    hub.admin.renewRights()
    const rights = { grant: { subject: 'ada', subscribe: ['a'] }, renew: async () => null, asOf }
    hub.port.subscribe({ kind: 'admitted', request: { ...fromNow, rights } }, sink())
    await environment.settle()
    expect(ended).toEqual(['token-expired'])
    await hub.close()
  })
})

interface Pair {
  readonly kid: string
  readonly key: KeyObject
}

function keyPair(kid: string) {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  return { kid, key: privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, alg: 'EdDSA', use: 'sig' } }
}

function sink() {
  return { write: () => true, pending: 0, end: () => undefined, destroy: () => undefined }
}
