import type { Hub } from '@rejoin/hub'
import { RejoinError } from '@rejoin/protocol'
import { describe, expect, test } from 'vitest'
import { createMaintenance } from '../src/observe/maintenance.ts'
import { watchPublishes } from '../src/observe/publishes.ts'
import { createReadiness } from '../src/observe/readiness.ts'
import { send } from './http.ts'
import { admin, observed, publish } from './observed.ts'

const allWell = { append: 'ok', read: 'ok', stopping: 'ok', maintenance: 'ok' }

describe('/healthz', () => {
  test('says that the program runs, whatever else is wrong', async () => {
    const { url, inner } = await observed()
    await inner.close()
    const { status, text } = await send(url, '/healthz')
    expect([status, JSON.parse(text)]).toEqual([200, { status: 'ok', version: '1.2.3' }])
  })
})

describe('/readyz', () => {
  test('answers 200 while events can be appended and dispatched', async () => {
    const { url } = await observed()
    expect((await publish(url, 'demo', 'one')).status).toBe(201)
    const { status, text } = await send(url, '/readyz')
    expect([status, JSON.parse(text)]).toEqual([200, { status: 'ready', checks: allWell }])
  })

  test('answers 503 as soon as the program is asked to stop', async () => {
    const { url, stopping } = await observed()
    stopping()
    const { status, text } = await send(url, '/readyz')
    expect(status).toBe(503)
    expect(JSON.parse(text)).toMatchObject({
      status: 'not-ready',
      checks: { ...allWell, stopping: expect.any(String) },
    })
  })

  test('answers 503 during maintenance, and 200 after it', async () => {
    const { url } = await observed()
    await admin(url, '/admin/maintenance', { on: true })
    expect((await send(url, '/readyz')).status).toBe(503)
    await admin(url, '/admin/maintenance', { on: false })
    expect((await send(url, '/readyz')).status).toBe(200)
  })

  test('answers 503 when the log cannot be read', async () => {
    const { url, inner } = await observed()
    await inner.close()
    const { status, text } = await send(url, '/readyz')
    expect([status, JSON.parse(text).checks.read]).toEqual([503, 'the log cannot be read'])
  })

  test('turns once the log refuses an event, and back when it takes one', async () => {
    const { check, publishes, fail, succeed } = publishing()
    await expect(Promise.all([publishes.publish('demo', { data: 1 }), fail()])).rejects.toThrow('full')
    expect((await check()).checks.append).toBe('the log has just refused an event')
    await Promise.all([publishes.publish('demo', { data: 1 }), succeed()])
    expect(await check()).toEqual({ ready: true, checks: allWell })
  })

  test('gives a log that refused an event another chance after ten seconds', async () => {
    const { check, publishes, fail, passTime } = publishing()
    await expect(Promise.all([publishes.publish('demo', { data: 1 }), fail()])).rejects.toThrow('full')
    passTime(9999)
    expect((await check()).ready).toBe(false)
    passTime(1)
    expect((await check()).ready).toBe(true)
  })

  test('turns when publishes are stuck', async () => {
    const { check, publishes, succeed, passTime } = publishing()
    const stuck = publishes.publish('demo', { data: 1 })
    passTime(10_001)
    expect((await check()).checks.append).toBe('no publish has come to its end for more than 10 s')
    succeed()
    await stuck
    expect((await check()).ready).toBe(true)
  })

  test('does not turn because a publisher made a mistake', async () => {
    const { check, publishes, fail } = publishing()
    const mistake = new RejoinError('no channel', { code: 'invalid-channel' })
    await expect(Promise.all([publishes.publish('*', { data: 1 }), fail(mistake)])).rejects.toThrow(mistake)
    expect((await check()).ready).toBe(true)
  })
})

/** Readiness over a hub whose publishes end when the test says so. */
function publishing() {
  let now = 0
  let settle: (error?: Error) => void = () => undefined
  const hub = {
    publish: () =>
      new Promise<void>((resolve, reject) => {
        settle = (error) => (error ? reject(error) : resolve())
      }),
    window: async () => ({}),
  } as unknown as Hub
  const publishes = watchPublishes(hub, () => now)
  const { check } = createReadiness({ hub, publishes, maintenance: createMaintenance(() => undefined) })
  return {
    check,
    publishes,
    passTime(ms: number) {
      now += ms
    },
    succeed: () => settle(),
    fail: (error = new RejoinError('The disk is full.', { code: 'log-unavailable' })) => settle(error),
  }
}
