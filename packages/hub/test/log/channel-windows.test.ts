import type { LogSource } from '@rejoin/hub'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { memoryLog } from '@rejoin/hub/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../../../test/support/temporary-folder.ts'
import { publish } from '../support/publishing.ts'
import { openHub } from '../support/recorder.ts'

const windows = {
  'prices/*': { maxEvents: 2, maxAgeMs: 60_000 },
  'prices/fx/*': { maxEvents: 3 },
  'prices/fx/eur': { maxEvents: 4 },
}

function onDisk(): LogSource {
  const { folder, remove } = temporaryFolder()
  onTestFinished(remove)
  return lmdbLog(folder, { window: { maxEvents: 6 }, windows })
}

describe.each([
  ['memory', () => memoryLog({ window: { maxEvents: 6 }, windows })],
  ['lmdb', onDisk],
])('channels of the %s log', (_name, log) => {
  test('have the window of the narrowest name over them, and the log’s for what it leaves out', async () => {
    const { hub } = await openHub({ log: log() })
    const counts: number[] = []
    for (const channel of ['prices/x', 'prices/fx/usd', 'prices/fx/eur', 'orders']) {
      await publish(hub, channel, 1, 2, 3, 4, 5, 6, 7, 8)
      counts.push((await hub.admin.window(channel)).events)
    }
    expect(counts).toEqual([2, 3, 4, 6])
    await hub.close()
  })

  test('tell which window that is', async () => {
    const { hub } = await openHub({ log: log() })
    await publish(hub, 'prices/fx/eur', 1)
    await publish(hub, 'prices/x', 1)
    const listed = (await hub.admin.channels()).map(({ channel, limits }) => [
      channel,
      limits.maxEvents,
      limits.maxAgeMs,
    ])
    const { maxAgeMs } = hub.log.window
    expect(listed).toEqual([
      ['prices/fx/eur', 4, maxAgeMs],
      ['prices/x', 2, 60_000],
    ])
    expect((await hub.admin.window('prices/*')).limits).toMatchObject({ maxEvents: 2, maxAgeMs: 60_000 })
    expect((await hub.admin.window('orders')).limits).toEqual(hub.log.window)
    await hub.close()
  })

  test('age by their own window', async () => {
    const { hub, environment } = await openHub({ log: log() })
    await publish(hub, 'prices/x', 1)
    await publish(hub, 'orders', 1)
    await environment.advance(120_000)
    expect([(await hub.admin.window('prices/x')).events, (await hub.admin.window('orders')).events]).toEqual([0, 1])
    await hub.close()
  })
})

test('a window for something that is no channel and no pattern is rejected', () => {
  expect(() => lmdbLog('unused', { windows: { 'a*': { maxEvents: 1 } } })).toThrow(/is no pattern/)
  expect(() => lmdbLog('unused', { windows: { a: { maxEvents: 0 } } })).toThrow(/window.maxEvents is 0/)
})
