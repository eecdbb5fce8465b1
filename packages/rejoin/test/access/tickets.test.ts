import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createValues } from '@rejoin/hub/internal'
import { lmdbLog } from '@rejoin/hub/lmdb'
import type { PutIfAbsent } from '@rejoin/hub/log'
import { RejoinError } from '@rejoin/protocol'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createTickets, type Tickets } from '../../src/access/tickets.ts'
import { serve } from '../../src/serve.ts'
import { open, send, serving, until } from '../support/http.ts'
import { guarded, secret, token } from './guarded.ts'

const soon = () => Date.now() / 1000 + 600

describe('POST /ticket', () => {
  test('gives a ticket for a token, which opens one stream', async () => {
    const { url, hub } = await guarded({ jwt: [{ secret }] })
    const { ticket, expiresAt } = await ticketFrom(url)
    expect(expiresAt).toBeGreaterThan(Date.now())
    expect(expiresAt).toBeLessThanOrEqual(Date.now() + 60_000)
    const stream = await open(url, `/events/orders/1?ticket=${ticket}`)
    await until(stream, 'event: hello')
    await hub.publish('orders/1', { data: 'shipped' })
    await until(stream, 'shipped')

    const again = await send(url, `/events/orders/1?ticket=${ticket}`)
    expect(again.status).toBe(401)
    expect(again.text).toContain('POST /ticket')
  })

  test('answers under that path and no other', async () => {
    const { url } = await guarded({ jwt: [{ secret }] })
    const headers = { authorization: `Bearer ${await token({ exp: soon() })}` }
    expect((await send(url, '/ticket/office', { method: 'POST', headers })).status).toBe(404)
  })

  test('a ticket has the rights of its token and no more', async () => {
    const { url } = await guarded({ jwt: [{ secret }] })
    expect((await send(url, `/events/secret?ticket=${(await ticketFrom(url)).ticket}`)).status).toBe(403)
  })

  test('a ticket opens a poll', async () => {
    const { url } = await guarded({ jwt: [{ secret }] })
    expect((await send(url, `/poll/orders/1?ticket=${(await ticketFrom(url)).ticket}`)).status).toBe(200)
  })

  test('a ticket does not publish, and gives no other ticket', async () => {
    const { url } = await guarded({ jwt: [{ secret }] })
    const { ticket } = await ticketFrom(url, { publish: ['*'] })
    expect((await send(url, `/publish/orders/1?ticket=${ticket}`, { method: 'POST', body: 'x' })).status).toBe(401)
    expect((await send(url, `/ticket?ticket=${ticket}`, { method: 'POST' })).status).toBe(401)
    expect((await send(url, `/events/orders/1?ticket=${ticket}`, { method: 'DELETE' })).status).toBe(405)
  })

  test('gives no ticket without a token or for a bad token, and says how to get one', async () => {
    const { url } = await guarded({ jwt: [{ secret }], anonymous: { subscribe: ['*'] } })
    for (const headers of [{}, { authorization: 'Bearer x' }]) {
      const { status, headers: answer, text } = await send(url, '/ticket', { method: 'POST', headers })
      expect(status).toBe(401)
      expect(answer['www-authenticate']).toBe('Bearer')
      expect(JSON.parse(text).error.code).toBe('unauthorized')
    }
  })

  test('takes POST only, is kept by no cache, and throws away a body', async () => {
    const { url } = await guarded({ jwt: [{ secret }] })
    const headers = { authorization: `Bearer ${await token({ exp: soon() })}` }
    expect((await send(url, '/ticket', { headers })).status).toBe(405)
    const given = await send(url, '/ticket', { method: 'POST', headers, body: 'x'.repeat(1_000_000) })
    expect(given.status).toBe(201)
    expect(given.headers['cache-control']).toBe('no-store')
  })

  test('that fails tells the observers of the hub why, and the requester only that it failed', async () => {
    let broken = false
    const clock = () => {
      if (broken) throw new Error('the clock is broken')
      return Date.now()
    }
    const { url, hub } = await guarded({ jwt: [{ secret }] }, clock)
    const failures: unknown[] = []
    hub.on('error', ({ cause }) => failures.push(cause))
    const headers = { authorization: `Bearer ${await token({ exp: soon() })}` }
    broken = true
    const { status, text } = await send(url, '/ticket', { method: 'POST', headers })
    expect([status, JSON.parse(text).error.code]).toEqual([500, 'internal'])
    expect(text).not.toContain('clock')
    expect(failures).toMatchObject([{ message: 'the clock is broken' }])
  })

  test('a ticket is no longer good than its token', async () => {
    let time = Date.now()
    const exp = Math.ceil(time / 1000) + 5
    const { url } = await guarded({ jwt: [{ secret }] }, () => time)
    const { ticket, expiresAt } = await ticketFrom(url, {}, exp)
    expect(expiresAt).toBe(exp * 1000)
    time = exp * 1000
    expect((await send(url, `/events/orders/1?ticket=${ticket}`)).status).toBe(401)
  })
})

describe('a ticket', () => {
  test('is good once, on whichever hub of the log it comes to', async () => {
    const [one, other] = hubs()
    const { ticket } = await one.issue('the token', forEver)
    expect(await redeem(other, ticket)).toBe('the token')
    for (const hub of [one, other]) await expect(redeem(hub, ticket)).rejects.toThrow(/used already.*POST \/ticket/)
  })

  test('that comes to two hubs at once is taken by exactly one', async () => {
    const [one, other] = hubs()
    for (let count = 0; count < 100; count += 1) {
      const { ticket } = await one.issue('the token', forEver)
      const outcomes = await Promise.allSettled([redeem(one, ticket), redeem(other, ticket)])
      expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    }
  })

  test('is good until its time is up, and says then that it has expired', async () => {
    const clock = { now: 0 }
    const [one, other] = hubs(clock)
    const [first, second] = [await one.issue('the token', forEver), await one.issue('the token', forEver)]
    clock.now = 29_999
    expect(await redeem(other, first.ticket)).toBe('the token')
    clock.now = 30_000
    await expect(redeem(other, second.ticket)).rejects.toThrow(/has expired.*POST \/ticket/)
  })

  test.each([
    ['behind', -3_600_000],
    ['ahead', 3_600_000],
  ])('is good once, until its time is up, on a hub whose clock is an hour %s', async (_which, aheadMs) => {
    const clock = { now: 10_000_000 }
    const putIfAbsent = createValues(() => clock.now)
    const [one, other] = [0, aheadMs].map((ms) =>
      createTickets({ ticketMs: 30_000, now: () => clock.now + ms, putIfAbsent, logClock: async () => clock.now }),
    ) as [Tickets, Tickets]
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      const [used, late] = [await from.issue('the token', forEver), await from.issue('the token', forEver)]
      expect(await redeem(to, used.ticket)).toBe('the token')
      clock.now += 29_999
      for (const hub of [one, other]) await expect(redeem(hub, used.ticket)).rejects.toThrow(/used already/)
      clock.now += 1
      for (const { ticket } of [used, late]) await expect(redeem(to, ticket)).rejects.toThrow(/has expired/)
    }
  })

  test('tells its requester in the time of the hub that issued it when it expires', async () => {
    const tickets = createTickets({
      ticketMs: 30_000,
      now: () => 1000,
      putIfAbsent: createValues(() => 0),
      logClock: async () => 500_000,
    })
    expect((await tickets.issue('the token', forEver)).expiresAt).toBe(31_000)
    expect((await tickets.issue('the token', 21_000)).expiresAt).toBe(21_000)
  })

  test('that nobody issued, that was changed, or that is of another log, is called that', async () => {
    const [one] = hubs()
    const [foreign] = hubs()
    const { ticket } = await one.issue('the token', forEver)
    const changed = `${ticket.slice(0, -4)}${ticket.endsWith('AAAA') ? 'BBBB' : 'AAAA'}`
    for (const text of ['', 'x', 'x'.repeat(20_000), changed, (await foreign.issue('the token', forEver)).ticket]) {
      await expect(redeem(one, text)).rejects.toThrow(/not from a hub of this log.*POST \/ticket/)
    }
    expect(await redeem(one, ticket)).toBe('the token')
  })

  test('in another spelling is the same ticket', async () => {
    const [one, other] = hubs()
    const { ticket } = await one.issue('the token!', forEver)
    await redeem(one, ticket)
    await expect(redeem(other, `${ticket}=`)).rejects.toThrow(/used already/)
  })

  test('shows nothing of its token', async () => {
    const [one] = hubs()
    const text = await token()
    const { ticket } = await one.issue(text, forEver)
    expect(ticket).toMatch(/^[\w-]+$/)
    const [, claims = ''] = text.split('.')
    for (const shown of [ticket, Buffer.from(ticket, 'base64url').toString('latin1')]) {
      expect(shown).not.toContain('alice')
      expect(shown).not.toContain(claims.slice(0, 20))
    }
  })

  test('can be had and used by one subject while another asks for thousands', async () => {
    const [one, other] = hubs()
    const { ticket } = await one.issue('bob’s', forEver)
    for (let count = 0; count < 20_000; count += 1) await one.issue('alice’s', forEver)
    expect(await redeem(other, ticket)).toBe('bob’s')
  })

  test('stays good when the log was emptied, because the hubs put their key back', async () => {
    const log = { putIfAbsent: createValues(() => 0) }
    const [one, other] = hubsOn(log)
    const { ticket } = await one.issue('the token', forEver)
    const second = await other.issue('the token', forEver)
    log.putIfAbsent = createValues(() => 0)
    await other.issue('the token', forEver)
    const [late] = hubsOn(log)
    expect(await redeem(late, ticket)).toBe('the token')
    expect(await redeem(one, second.ticket)).toBe('the token')
  })

  test('is made with the key of the log again once a hub asks, when another key has come to stand there', async () => {
    const clock = { now: 0 }
    const log = { putIfAbsent: createValues(() => clock.now) }
    const [one] = hubsOn(log, clock)
    const old = await one.issue('the token', forEver)
    log.putIfAbsent = createValues(() => clock.now)
    const [late] = hubsOn(log, clock)
    const { ticket } = await late.issue('the token', forEver)
    clock.now += 1000
    expect(await redeem(one, ticket)).toBe('the token')
    expect(await redeem(late, (await one.issue('the token', forEver)).ticket)).toBe('the token')
    await expect(redeem(late, old.ticket)).rejects.toThrow(/not from a hub of this log/)
  })

  test('is given while the log is unavailable, is not used up by then, and is good when the log is back', async () => {
    const values = createValues(() => 0)
    const log = { putIfAbsent: values }
    const [one, other] = hubsOn(log)
    await redeem(other, (await one.issue('the token', forEver)).ticket)
    log.putIfAbsent = async () => {
      throw new RejoinError('away', { code: 'log-unavailable', retryable: true })
    }
    const { ticket } = await one.issue('the token', forEver)
    await expect(redeem(other, ticket)).rejects.toMatchObject({ code: 'log-unavailable' })
    log.putIfAbsent = values
    expect(await redeem(other, ticket)).toBe('the token')
  })

  test('that was invented does not become a call to the log each time', async () => {
    let calls = 0
    const values = createValues(() => 0)
    const [one] = hubsOn({
      putIfAbsent: (...put) => {
        calls += 1
        return values(...put)
      },
    })
    for (let count = 0; count < 1000; count += 1) await redeem(one, `x${count}`).catch(() => undefined)
    expect(calls).toBe(1)
  })
})

test('a ticket is good after a restart of the embedded log, unless it was used before', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rejoin-tickets-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const options = { access: { jwt: [{ secret }] } }
  const before = await serve({ ...options, port: 0, log: lmdbLog(folder) })
  const [used, unused] = [await ticketFrom(before.url), await ticketFrom(before.url)]
  expect((await send(before.url, `/poll/orders/1?waitMs=0&ticket=${used.ticket}`)).status).toBe(200)
  await before.close({ withinMs: 0 })
  const { url } = await serving({ ...options, log: lmdbLog(folder) })
  const again = await send(url, `/poll/orders/1?waitMs=0&ticket=${used.ticket}`)
  expect([again.status, again.text]).toEqual([401, expect.stringContaining('used already')])
  expect((await send(url, `/poll/orders/1?waitMs=0&ticket=${unused.ticket}`)).status).toBe(200)
})

const forEver = Number.POSITIVE_INFINITY

function hubs(clock = { now: 0 }): [Tickets, Tickets] {
  return hubsOn({ putIfAbsent: createValues(() => clock.now) }, clock)
}

/** The tickets of two hubs on one log. */
function hubsOn(log: { putIfAbsent: PutIfAbsent }, clock = { now: 0 }): [Tickets, Tickets] {
  const putIfAbsent: PutIfAbsent = (...put) => log.putIfAbsent(...put)
  const open = () =>
    createTickets({ ticketMs: 30_000, now: () => clock.now, putIfAbsent, logClock: async () => clock.now })
  return [open(), open()]
}

async function redeem(tickets: Tickets, text: string): Promise<string> {
  const ticket = await tickets.open(text)
  await ticket.use()
  return ticket.token
}

async function ticketFrom(
  url: string,
  rights: object = {},
  exp = soon(),
): Promise<{ ticket: string; expiresAt: number }> {
  const text = await token({ exp, rejoin: { subscribe: ['orders/*'], ...rights } })
  const answer = await send(url, '/ticket', { method: 'POST', headers: { authorization: `Bearer ${text}` } })
  expect(answer.status).toBe(201)
  return JSON.parse(answer.text)
}
