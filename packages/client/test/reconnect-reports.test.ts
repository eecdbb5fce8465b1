import { expect, test, vi } from 'vitest'
import { connect, type ReconnectRecord } from '../src/index.ts'
import { hello, scriptedServer } from './support/scripted-server.ts'
import { clock, deferred, moved, opened, page, retried, server, start, stateOf, useStage } from './support/stage.ts'

useStage()

test('reconnects are reported together, once there is a connection again', async () => {
  const reports: ReconnectRecord[][] = []
  const { stream } = start({ reports: (records) => reports.push(records) })
  for (let attempt = 0; attempt < 3; attempt++) {
    const visit = await server.visit()
    await settled()
    visit.cut()
    await retried(stream)
  }
  expect(reports).toEqual([])
  await server.stream()
  await stateOf(stream, 'connected')
  expect(reports).toHaveLength(1)
  expect(reports[0]?.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
  expect(reports[0]?.[0]).toEqual({
    event: 'sse_reconnect',
    attempt: 1,
    delay_ms: 750,
    url: server.url,
    timestamp: new Date(1_700_000_000_000).toISOString(),
  })
})

test('a server that accepts and drops is not also flooded with reports', async () => {
  const reports: ReconnectRecord[][] = []
  const { stream } = start({ transports: ['fetch'], reports: (records) => reports.push(records) })
  await settled()
  for (let attempt = 0; attempt < 8; attempt++) {
    const visit = await server.stream()
    await stateOf(stream, 'connected')
    visit.cut()
    await retried(stream)
  }
  expect(clock.now() - 1_700_000_000_000).toBeGreaterThan(30_000)
  expect(reports.length).toBeLessThan(4)
})

test('reports are posted as JSON, and one that is lost is not sent again', async () => {
  const collector = await scriptedServer()
  const asked = vi.spyOn(globalThis, 'fetch')
  const { stream } = start({ reports: `${collector.url}?log`, from: 'e1' })
  const first = await server.visit()
  await settled()
  first.cut()
  await retried(stream)
  await server.stream()
  const report = await collector.visit()
  expect(report.headers['content-type']).toBe('application/json')
  // So that it arrives when the page is left right after.
  expect(asked).toHaveBeenCalledWith(`${collector.url}?log`, expect.objectContaining({ keepalive: true }))
  report.cut()
  await collector.close()
  expect(collector.visits()).toBe(1)
  expect(stream.state.state).toBe('connected')
})

test('a report names the stream without its query, where some keep their tokens', async () => {
  const reported = deferred<ReconnectRecord[]>()
  const stream = connect(`${server.url}?ticket=secret`, { clock, reports: reported.resolve })
  opened.push(stream)
  const first = await server.visit()
  await settled()
  first.cut()
  await retried(stream)
  await server.stream()
  expect((await reported.promise).map(({ url }) => url)).toEqual([server.url])
})

test('a wait is reported once, also when the network comes back before the server wants to be asked', async () => {
  const { window } = page()
  const reports: ReconnectRecord[][] = []
  const { stream } = start({ reports: (records) => reports.push(records) })
  const first = await server.visit()
  await settled()
  first.answer(503, { 'retry-after': '10' })
  await stateOf(stream, 'backoff')
  window.dispatchEvent(new Event('online'))
  expect(stream.state).toMatchObject({ state: 'backoff', attempt: 0 })
  await retried(stream)
  await server.stream()
  await stateOf(stream, 'connected')
  expect(reports.flat().map(({ attempt }) => attempt)).toEqual([1])
})

test('a reconnect that follows a report too soon is reported later, also when nothing else happens', async () => {
  const reports: ReconnectRecord[][] = []
  const { stream } = start({ transports: ['fetch'], reports: (records) => reports.push(records) })
  const first = await server.visit()
  await settled()
  first.cut()
  await retried(stream)
  const second = await server.stream()
  await stateOf(stream, 'connected')
  second.cut()
  await retried(stream)
  const third = await server.stream()
  third.send(...hello({ heartbeatMs: 600_000 }, 'e0'))
  await moved(stream, 'e0')
  expect(reports).toHaveLength(1)
  clock.advance(30_000)
  expect(reports.map((records) => records.length)).toEqual([1, 1])

  third.cut()
  await retried(stream)
  await server.stream()
  await stateOf(stream, 'connected')
  stream.close()
  expect(reports).toHaveLength(3)
  expect(clock.timers()).toEqual([])
})

test('a collector that fails is reported, and ends nothing', async () => {
  const failed = deferred<unknown>()
  vi.spyOn(console, 'error').mockImplementation(failed.resolve)
  const { stream } = start({ reports: () => Promise.reject(new Error('full')) })
  const first = await server.visit()
  await settled()
  first.cut()
  await retried(stream)
  await server.stream()
  expect(await failed.promise).toMatchObject({ message: 'full' })
  expect(stream.state.state).toBe('connected')
})

/** The module that reports is loaded when it is asked for. */
async function settled(): Promise<void> {
  await vi.dynamicImportSettled()
}
