import { rmSync } from 'node:fs'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { memoryLog } from '@rejoin/hub/memory'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { temporaryFolder } from '../../../../test/support/temporary-folder.ts'
import { createReadiness } from '../../src/monitoring/health.ts'
import { send } from '../support/http.ts'
import { admin, asAdmin, observed, publish } from '../support/observed.ts'

const allWell = { log: 'ok', stopping: 'ok', maintenance: 'ok' }

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

  test('says how much of the log’s budget is used, and is ready when all of it is', async () => {
    const { url } = await observed({ hubOptions: { log: memoryLog({ maxBytes: 1000 }) } })
    await publish(url, 'demo', 'x'.repeat(393))
    const { text } = await send(url, '/readyz')
    expect(JSON.parse(text)).toEqual({ status: 'ready', checks: allWell, budget: { usedBytes: 400, maxBytes: 1000 } })
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

  test('answers 503 when the log takes nothing', async () => {
    const { url, inner } = await observed()
    await inner.close()
    const { status, text } = await send(url, '/readyz')
    expect([status, JSON.parse(text).checks.log]).toEqual([503, 'the log cannot store or deliver events'])
  })

  test('names the reason of the log to admins alone: it may hold a path or an address', async () => {
    const { folder, remove } = temporaryFolder()
    onTestFinished(remove)
    const { url, adminUrl } = await observed({ hubOptions: { log: lmdbLog(folder) } })
    rmSync(folder, { recursive: true })
    const logCheck = async (base: string, headers = {}) =>
      JSON.parse((await send(base, '/readyz', { headers })).text).checks.log
    expect(await logCheck(url)).toBe('the log cannot store or deliver events')
    for (const base of [url, adminUrl]) {
      expect(await logCheck(base, asAdmin)).toMatch(/The file data\.mdb in \S+ was removed or replaced/)
    }
  })

  test('asks the log once a second at most, however many ask', async () => {
    let [now, probes] = [0, 0]
    const probe = async () => {
      probes += 1
    }
    const { check } = createReadiness({
      hub: { admin: { probe }, log: {} },
      maintenance: { isOn: false },
      now: () => now,
    })
    await Promise.all(Array.from({ length: 100 }, check))
    now = 999
    expect(await check()).toEqual({ ready: true, checks: allWell })
    expect(probes).toBe(1)
    now = 1000
    await check()
    expect(probes).toBe(2)
  })

  test('turns with the log, and back', async () => {
    let [now, isWell] = [0, true]
    const probe = async () => {
      if (!isWell) throw new Error('The disk is full.')
    }
    const { check } = createReadiness({
      hub: { admin: { probe }, log: {} },
      maintenance: { isOn: false },
      now: () => now,
    })
    const readyAt = async (ms: number) => {
      now = ms
      return (await check()).ready
    }
    expect(await readyAt(0)).toBe(true)
    isWell = false
    expect(await readyAt(5000)).toBe(false)
    isWell = true
    expect(await readyAt(10_000)).toBe(true)
  })

  test('does not wait for a log that does not answer', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const hub = { admin: { probe: () => new Promise<void>(() => undefined) }, log: {} }
    const report = createReadiness({ hub, maintenance: { isOn: false } }).check()
    await vi.advanceTimersByTimeAsync(2000)
    expect((await report).checks.log).toBe('it has not answered within 2000 ms')
  })
})
