import { describe, expect, test } from 'vitest'
import { createTickets } from '../../src/access/tickets.ts'
import { open, send, until } from '../support/http.ts'
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
  test('is good once', () => {
    const tickets = createTickets(30_000, () => 0)
    const { ticket } = tickets.issue('the token', 'alice', Number.POSITIVE_INFINITY)
    expect(tickets.redeem(ticket)).toBe('the token')
    expect(tickets.redeem(ticket)).toBeUndefined()
  })

  test('is good until its time is up', () => {
    let time = 0
    const tickets = createTickets(30_000, () => time)
    const [first, second] = [0, 1].map(() => tickets.issue('the token', 'alice', Number.POSITIVE_INFINITY).ticket)
    time = 29_999
    expect(tickets.redeem(first as string)).toBe('the token')
    time = 30_000
    expect(tickets.redeem(second as string)).toBeUndefined()
  })

  test('cannot be guessed', () => {
    const tickets = createTickets(30_000, () => 0)
    const made = Array.from({ length: 1000 }, (_, n) => tickets.issue('t', `s${n}`, Number.POSITIVE_INFINITY).ticket)
    expect(new Set(made).size).toBe(1000)
    for (const ticket of made) expect(ticket).toMatch(/^[\w-]{32}$/)
  })

  test('is kept although another subject asks for thousands', () => {
    const tickets = createTickets(30_000, () => 0)
    const { ticket: of_bob } = tickets.issue('bob’s', 'bob', Number.POSITIVE_INFINITY)
    const flood = Array.from({ length: 20_000 }, () => tickets.issue('t', 'alice', Number.POSITIVE_INFINITY).ticket)
    expect(tickets.redeem(of_bob)).toBe('bob’s')
    expect(flood.filter((ticket) => tickets.redeem(ticket) !== undefined)).toEqual(flood.slice(-16))
  })

  test('is rejected beyond 10,000, until older tickets have expired', () => {
    let time = 0
    const tickets = createTickets(30_000, () => time)
    for (let n = 0; n < 10_000; n += 1) tickets.issue('t', `s${n}`, Number.POSITIVE_INFINITY)
    const oneMore = () => tickets.issue('t', 'one more', Number.POSITIVE_INFINITY)
    expect(oneMore).toThrow(expect.objectContaining({ code: 'overloaded', retryable: true }))
    time = 30_000
    expect(oneMore).not.toThrow()
  })
})

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
