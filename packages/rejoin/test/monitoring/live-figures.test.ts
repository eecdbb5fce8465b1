import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Figures } from '../../src/monitoring/figures.ts'
import { open, send, serving, until } from '../support/http.ts'
import { asAdmin, observed, publish } from '../support/observed.ts'

describe('/admin/live', () => {
  test('tells every second what the hub does', async () => {
    const { url } = await observed()
    await open(url, '/events/orders')
    await publish(url, 'orders', 'one')
    const { readers, totals, connects, log, retryMs } = await figuresOf(url)
    expect(readers).toEqual({ live: 1, replaying: 0, slow: 0 })
    expect(totals).toMatchObject({ events: 1, deliveries: 1 })
    expect([connects, log.name, retryMs]).toEqual([1, 'memory', 2000])
  })

  test('tells what became of returning readers, and how many events they got', async () => {
    const { url, inner } = await observed()
    const { id } = await inner.publish('orders', { text: 'one' })
    await inner.publish('orders', { text: 'two' })
    await until(await open(url, '/events/orders', { headers: { 'last-event-id': id } }), 'data: two')
    await inner.invalidate('orders')
    await until(await open(url, '/events/orders', { headers: { 'last-event-id': id } }), 'sync-required')
    const { resumes, replaySizes } = await figuresOf(url)
    expect(resumes).toEqual({ replayed: 1, forced: 1 })
    expect(replaySizes).toEqual([0, 1, 0, 0, 0, 0, 0])
  })

  test('tells which readers have gone, and why', async () => {
    const { url, inner } = await observed()
    const reader = await open(url, '/events/orders')
    await until(reader, 'hello')
    for (const { connection } of inner.admin.connections()) inner.admin.disconnectHere(connection)
    const { closes } = await figuresOf(url)
    expect(closes).toMatchObject([{ channels: ['orders'], reason: 'admin', ip: '127.0.0.1' }])
  })

  test('knows no other hub of a log that only one can use', async () => {
    const { url } = await observed()
    expect((await figuresOf(url)).nodes).toBeNull()
  })

  test('resumes: the seconds of a cut are not lost', async () => {
    const { url } = await observed()
    const first = await until(await open(url, '/admin/live', { headers: asAdmin }), 'event: figures')
    const id = /^id: (\S+)$/m.exec(first)?.[1] ?? ''
    const back = await open(url, '/admin/live', { headers: { ...asAdmin, 'last-event-id': id } })
    expect(await until(back, 'event: figures')).toContain('"resumed":true')
  })

  test('has the seconds before anybody looked', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const { url } = await observed()
    vi.advanceTimersByTime(3000)
    const stream = await open(url, '/admin/live?replay=10', { headers: asAdmin })
    let read = ''
    for (const seconds of [3, 4]) {
      while (read.split('event: figures').length <= seconds) read += await until(stream, 'event: figures')
      expect(read.split('event: figures')).toHaveLength(seconds + 1)
      vi.advanceTimersByTime(1000)
    }
  })

  test('does not exist without the admin token', async () => {
    const { url } = await observed()
    expect((await send(url, '/admin/live')).status).toBe(404)
    expect((await send(url, '/events/figures?replay=1', { method: 'POST' })).status).toBe(405)
  })
})

describe('the dashboard', () => {
  test('is on the public port for those who have a token, which is asked for in the page', async () => {
    const { url } = await serving({ admin: { token: 'an-admin-token-of-the-tests' } })
    expect((await send(url, '/dashboard', { method: 'POST' })).status).toBe(405)
  })

  test('is not there without one, but on the admin port', async () => {
    const { url, adminUrl = '' } = await serving({ admin: { port: 0 } })
    expect((await send(url, '/dashboard', { method: 'POST' })).status).toBe(404)
    expect((await send(adminUrl, '/dashboard', { method: 'POST' })).status).toBe(405)
    expect((await send(adminUrl, '/', { method: 'POST' })).status).toBe(405)
  })
})

/** The next that are told. */
async function figuresOf(url: string): Promise<Figures> {
  const text = await until(await open(url, '/admin/live', { headers: asAdmin }), 'event: figures')
  const [, data = ''] = /event: figures\ndata: (.*)\n/.exec(text) ?? []
  return JSON.parse(data) as Figures
}
