import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHub, type Hub } from '@rejoin/hub'
import { createSubscription, type Sink } from '@rejoin/hub/internal'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { memoryLog } from '@rejoin/hub/memory'
import { createVirtualEnvironment, type VirtualEnvironment } from '@rejoin/hub/testing'
import { createParser } from '@rejoin/protocol'
import type { JWTPayload } from 'jose'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type Access, createAccess } from '../../src/access/access.ts'
import { createRevocations } from '../../src/access/revocations.ts'
import type { Call } from '../../src/http/routes.ts'
import { serve } from '../../src/serve.ts'
import { open, send, until } from '../support/http.ts'
import { guarded, inAnHour, noon, secret, token, verdict } from './guarded.ts'

const key = 'rk_2v8XqLw9ZtB4nHc7JmYs1Kd6Fp3Gr5Ae'
const revoked = 'unauthorized: These rights were taken back. Get a new token.'

describe('a revocation', () => {
  const seconds = noon / 1000
  const start = () => {
    const clock = { now: noon }
    const sha256 = createHash('sha256').update(key).digest('hex')
    const rules = { jwt: [{ secret }], keys: [{ name: 'app', sha256, subscribe: ['*'] }] }
    const access = createAccess(rules, { now: () => clock.now })
    const judge = async (claims: JWTPayload) => verdict(access, { authorization: `Bearer ${await token(claims)}` })
    return { clock, access, judge }
  }

  test('of a subject rejects its earlier tokens, also those found good a moment ago; newer ones are good', async () => {
    const { clock, access, judge } = start()
    expect(await judge({ iat: seconds - 10 })).toMatchObject({ subject: 'alice' })
    access.revoke('alice')
    expect(await judge({ iat: seconds - 10 })).toBe(revoked)
    expect(await judge({ iat: seconds })).toBe(revoked)
    expect(await judge({})).toBe(revoked)
    expect(await judge({ sub: 'bob' })).toMatchObject({ subject: 'bob' })
    clock.now += 1000
    expect(await judge({ iat: seconds + 1 })).toMatchObject({ subject: 'alice' })
  })

  test('covers the tokens of an issuer whose clock is ahead of ours, also after a restart; newer ones are good', async () => {
    const { clock, access, judge } = start()
    const issue = (second: number) => ({ iat: seconds + second + 40 })
    expect(await judge({ ...issue(0), sub: 'bob' })).toMatchObject({ subject: 'bob' })
    clock.now += 5000
    const at = access.issuersNow()
    access.revoke('alice', { at })
    for (const second of [-30, 0, 5]) expect(await judge(issue(second))).toBe(revoked)
    clock.now += 1000
    expect(await judge(issue(6))).toMatchObject({ subject: 'alice' })
    const restarted = start()
    restarted.access.revoke('alice', { at })
    restarted.clock.now += 120_000
    expect(await restarted.judge(issue(0))).toBe(revoked)
    expect(await restarted.judge(issue(6))).toMatchObject({ subject: 'alice' })
  })

  test('cannot be escaped by a token from the future, which is rejected until its time is near', async () => {
    const { clock, judge } = start()
    const fromTheFuture = { iat: seconds + 61 }
    expect(await judge(fromTheFuture)).toBe(
      'unauthorized: The token was issued in the future. Set the clocks of its issuer and of this hub.',
    )
    clock.now += 1000
    expect(await judge(fromTheFuture)).toMatchObject({ subject: 'alice' })
  })

  test('by the admin API covers a token whose issuer is ahead of our clock', async () => {
    const admin = { token: 'an-admin-token-for-tests' }
    const { url, close } = await serve({ port: 0, access: { jwt: [{ secret }] }, admin })
    onTestFinished(() => close({ withinMs: 0 }))
    const issued = Math.floor(Date.now() / 1000) + 50
    const headers = { authorization: `Bearer ${await token({ iat: issued, exp: issued + 600 })}` }
    const poll = async () => (await send(url, '/poll/orders/1?waitMs=0', { headers })).status
    expect(await poll()).toBe(200)
    const asAdmin = { authorization: `Bearer ${admin.token}` }
    await send(url, '/admin/revoke', { method: 'POST', headers: asAdmin, body: '{"subject":"alice"}' })
    expect(await poll()).toBe(401)
  })

  test('is in force after a restart of the embedded log', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rejoin-revocations-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const options = { port: 0, access: { jwt: [{ secret }] } }
    const now = Math.floor(Date.now() / 1000)
    const headersOf = async (sub: string) => ({
      authorization: `Bearer ${await token({ sub, iat: now - 10, exp: now + 600 })}`,
    })
    const before = await serve({ ...options, log: lmdbLog(folder) })
    await before.hub.revoke('alice', { until: (now + 600) * 1000 })
    await before.close({ withinMs: 0 })
    const { url, close } = await serve({ ...options, log: lmdbLog(folder) })
    onTestFinished(() => close({ withinMs: 0 }))
    const statusFor = async (sub: string) =>
      (await send(url, '/poll/orders/1?waitMs=0', { headers: await headersOf(sub) })).status
    expect([await statusFor('alice'), await statusFor('bob')]).toEqual([401, 200])
  })

  test('of a single token rejects it by its name, and the others of its subject are good', async () => {
    const { access, judge } = start()
    access.revoke('alice', { jti: 'stolen' })
    expect(await judge({ jti: 'stolen' })).toBe(revoked)
    expect(await judge({ jti: 'other' })).toMatchObject({ subject: 'alice' })
    expect(await judge({})).toMatchObject({ subject: 'alice' })
    expect(await judge({ jti: 'stolen', sub: 'bob' })).toMatchObject({ subject: 'bob' })
  })

  test('of an API key rejects it by its name', async () => {
    const { access } = start()
    expect(await verdict(access, { authorization: `Bearer ${key}` })).toMatchObject({ subject: 'key:app' })
    access.revoke('key:app')
    expect(await verdict(access, { authorization: `Bearer ${key}` })).toBe(revoked)
  })

  test('is remembered until the token would have expired anyway', async () => {
    const { clock, access, judge } = start()
    access.revoke('alice', { until: noon + 60_000 })
    clock.now += 59_999
    expect(await judge({})).toBe(revoked)
    clock.now += 1
    expect(await judge({})).toMatchObject({ subject: 'alice' })
  })

  test('has room for 10,000, and none is forgotten for the next', () => {
    let time = 0
    const revocations = createRevocations(() => time)
    for (let count = 0; count < 10_000; count += 1) revocations.add(`s${count}`, count === 7 ? { until: 1 } : {})
    expect(() => revocations.add('one more', {})).toThrow(expect.objectContaining({ code: 'overloaded' }))
    expect(() => revocations.add('s0', {})).not.toThrow()
    time = 1
    expect(() => revocations.add('one more', {})).not.toThrow()
    expect(revocations.has({ grant: { subject: 's0' } })).toBe(true)
  })
})

test('a ticket of somebody whose rights are taken back opens nothing', async () => {
  const { url, access } = await guarded({ jwt: [{ secret }] }, () => noon)
  const headers = { authorization: `Bearer ${await token()}` }
  const { ticket } = JSON.parse((await send(url, '/ticket', { method: 'POST', headers })).text)
  access.revoke('alice')
  const { status, text } = await send(url, `/events/orders/1?ticket=${ticket}`)
  expect(status).toBe(401)
  expect(text).toContain('taken back')
})

test('over HTTP, a revoked reader is told, gets nothing more, and does not get in again', async () => {
  const { url, hub, access } = await guarded({ jwt: [{ secret }] })
  const headers = { authorization: `Bearer ${await token({ exp: Date.now() / 1000 + 600 })}` }
  const stream = await open(url, '/events/orders/1', { headers })
  await until(stream, 'event: hello')
  access.revoke('alice')
  hub.revoke('alice')
  await hub.publish('orders/1', { data: 'private' })
  let rest = ''
  for await (const part of stream) rest += part
  expect(rest).toContain('token-expired')
  expect(rest).not.toContain('private')
  expect((await send(url, '/events/orders/1', { headers })).status).toBe(401)
})

describe('a reader that reads on after its rights were taken back gets none of what is private', () => {
  // The replay of 500 events stands still when the reader stops taking bytes: that is the middle in which things happen.
  test.each([
    ['by a token', false],
    ['by a ticket', true],
  ])('in the middle of a replay, opened %s, and the hub is told', async (_how, byTicket) => {
    const { hub, access, sink, readOn } = await midReplay(byTicket)
    access.revoke('alice')
    hub.revoke('alice')
    expect(await readOn()).toEqual([])
    expect(sink.destroy).toHaveBeenCalledOnce()
  })

  test.each([
    ['by a token', false],
    ['by a ticket', true],
  ])('in the middle of a replay, opened %s, when only the rules know', async (_how, byTicket) => {
    const { environment, access, readOn } = await midReplay(byTicket)
    access.revoke('alice')
    await environment.advance(5000)
    expect(await readOn()).toEqual(['close'])
  })

  test.each([
    ['by a token', false],
    ['by a ticket', true],
  ])(
    'and one whose rights hold gets everything, opened %s, also after they were asked for again',
    async (_how, byTicket) => {
      const { environment, readOn, got } = await midReplay(byTicket)
      await environment.advance(5000)
      const rest = await readOn()
      expect(got + rest.filter((type) => type === 'message').length).toBe(privateEvents)
      expect(rest).not.toContain('close')
    },
  )
})

interface MidReplay {
  environment: VirtualEnvironment
  hub: Hub
  access: Access
  sink: Sink
  /** Private events until now. */
  got: number
  /** Takes everything that still comes, and gives the types of it. */
  readOn(): Promise<string[]>
}

const privateEvents = 500
const fullAfter = 64 * 1024

/** A reader that has got part of its private events and takes no more for now. */
async function midReplay(byTicket: boolean): Promise<MidReplay> {
  const environment = createVirtualEnvironment({ now: noon })
  const hub = await createHub({ log: memoryLog(), environment })
  const access = createAccess({ jwt: [{ secret }] }, { now: environment.now })
  for (let count = 0; count < privateEvents; count += 1) await hub.publish('orders/1', { data: 'x'.repeat(1000) })
  const request = await requestOf(access, byTicket)
  const grant = await access.authorize(request)
  if (!grant) throw new Error('The reader has no rights to begin with.')

  const types: string[] = []
  const parser = createParser({ onEvent: ({ type }) => void types.push(type) })
  let waiting = 0
  const sink: Sink = {
    write({ plain }) {
      parser.feed(new TextDecoder().decode(plain))
      waiting += plain.length
      return waiting <= fullAfter
    },
    get pending() {
      return waiting
    },
    end: () => undefined,
    destroy: vi.fn<() => void>(),
  }
  const subscription = createSubscription(['orders/1'])
  const rights = { grant, renew: async () => access.authorize(request) }
  const asked = { subscription, start: { from: 'earliest' as const }, rights }
  const session = hub.port.subscribe({ kind: 'admitted', request: asked }, sink)
  await environment.settle()
  const before = types.length
  expect(before).toBeGreaterThan(1)
  expect(before).toBeLessThan(privateEvents)

  return {
    environment,
    hub,
    access,
    sink,
    got: types.filter((type) => type === 'message').length,
    async readOn() {
      while (waiting > 0) {
        waiting = 0
        session.drained()
        await environment.settle()
      }
      return types.slice(before)
    },
  }
}

async function requestOf(access: Access, byTicket: boolean): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${await token({ exp: inAnHour, iat: noon / 1000 })}` }
  if (!byTicket) return { method: 'GET', url: '/events/orders/1', headers } as IncomingMessage
  const asked = { method: 'POST', url: '/ticket', headers, resume: () => undefined } as unknown as IncomingMessage
  const { body } = (await access.ticketRoute.handle({ request: asked } as Call)) as { body: { ticket: string } }
  return { method: 'GET', url: `/events/orders/1?ticket=${body.ticket}`, headers: {} } as IncomingMessage
}
