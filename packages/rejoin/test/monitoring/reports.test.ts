import { connect } from '@rejoin/client'
import type { ReconnectReport } from '@rejoin/hub/operations'
import { describe, expect, test } from 'vitest'
import type { Call } from '../../src/http/routes.ts'
import type { Logging } from '../../src/logging/logging.ts'
import { reconnectReportRoute } from '../../src/monitoring/reconnect-reports.ts'
import { send } from '../support/http.ts'
import { observed } from '../support/observed.ts'

const record = {
  ...{ event: 'sse_reconnect', attempt: 1, delay_ms: 250 },
  ...{ url: 'http://localhost/events/demo', timestamp: '2026-01-01T00:00:00.000Z' },
}

describe('POST /log', () => {
  test('hears from our client that its connection was lost', async () => {
    const { url, told, inner } = await reporting()
    const stream = connect(`${url}/events/demo`, { reports: `${url}/log`, backoff: () => 1 })
    await expect.poll(() => stream.state.state).toBe('connected')
    for (const { connection } of inner.admin.connections()) inner.admin.disconnectHere(connection, { retryMs: 1 })
    await expect.poll(told).toHaveLength(1)
    stream.close()
    expect(told()).toMatchObject([
      { attempt: 1, url: `${url}/events/demo`, ip: '127.0.0.1', delayMs: expect.any(Number) },
    ])
  })

  test('takes what other clients send: fractions of a millisecond, neither address nor time', async () => {
    const { url, told } = await reporting()
    const lean = { event: 'sse_reconnect', attempt: 0, delay_ms: 1043.27 }
    expect((await report(url, lean)).status).toBe(204)
    expect(told()).toMatchObject([{ attempt: 0, delayMs: 1043, url: null }])
    expect(Math.abs(Date.parse(told()[0]?.timestamp ?? '') - Date.now())).toBeLessThan(60_000)
  })

  test('takes one record, or many', async () => {
    const { url, told } = await reporting()
    expect((await report(url, record)).status).toBe(204)
    expect((await report(url, [record, { ...record, attempt: 2 }])).status).toBe(204)
    expect(told().map(({ attempt }) => attempt)).toEqual([1, 1, 2])
  })

  test.each([
    'http://localhost/events/demo?token=secret#secret',
    'https://user:secret@example.com/events/demo?x=secret',
    'secret:secret@/events?secret\nsecret',
  ])('drops the query, the fragment and the user of %s, which may hold secrets', async (address) => {
    const { url, told } = await reporting()
    await report(url, { ...record, url: address })
    expect(told()[0]?.url).not.toMatch(/\?|#|user:|example\.com\/.*secret/)
  })

  test.each([
    ['nothing', null],
    ['another event', { ...record, event: 'click' }],
    ['an attempt that is none', { ...record, attempt: -1 }],
    ['a delay that is none', { ...record, delay_ms: 'soon' }],
    ['an address that is no text', { ...record, url: 7 }],
    ['a list of something else', [[record]]],
    ['too many', Array(101).fill(record)],
  ])('rejects %s, and notes nothing of it', async (_what, body) => {
    const { url, told } = await reporting()
    expect((await report(url, body)).status).toBe(400)
    expect(told()).toEqual([])
  })

  test('rejects a body that is too long', async () => {
    const { url } = await reporting()
    expect((await report(url, { ...record, url: 'x'.repeat(70_000) })).status).toBe(413)
  })

  test('stops listening to an address that sends too many reports, and to all when all do', async () => {
    let now = 0
    const told: ReconnectReport[] = []
    const { handle } = reconnectReportRoute(
      (report) => told.push(report),
      () => now,
    )
    const say = (ip: string) => handle({ ip, userAgent: null, body: async () => record } as Call)
    for (let count = 0; count < 60; count += 1) await say('one')
    await expect(say('one')).rejects.toThrow(expect.objectContaining({ code: 'rate-limited' }))
    for (let count = 60; count < 3000; count += 1) await say(`address ${count}`)
    await expect(say('another')).rejects.toThrow(expect.objectContaining({ code: 'rate-limited' }))
    expect(told).toHaveLength(3000)
    now += 60_000
    await say('one')
    expect(told).toHaveLength(3001)
  })

  test('answers a client that sends too many reports with 429', async () => {
    const { url } = await reporting()
    for (let count = 0; count < 60; count += 1) await report(url, record)
    expect((await report(url, record)).status).toBe(429)
  })
})

async function reporting() {
  const reports: ReconnectReport[] = []
  const logging = {
    reconnected: (report) => void reports.push(report),
    administered: () => undefined,
  } as Partial<Logging> as Logging
  return { ...(await observed({ logging })), told: () => reports }
}

function report(url: string, body: unknown) {
  return send(url, '/log', { method: 'POST', body: JSON.stringify(body) })
}
