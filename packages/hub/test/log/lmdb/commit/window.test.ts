import { statSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { lmdbLog } from '@rejoin/hub/lmdb'
import type { Log } from '@rejoin/hub/log'
import { isAfter, origin } from '@rejoin/protocol'
import { open as openDatabase } from 'lmdb'
import { describe, expect, test } from 'vitest'
import { lmdbWorkbench, passTimeUntil, publish, readOn } from '../workbench.ts'

describe('the window of a channel', () => {
  test('is 10,000 events, a day and 64 MiB, unless it is said otherwise', async () => {
    const { open } = lmdbWorkbench()
    expect((await open()).window).toEqual({ maxEvents: 10_000, maxAgeMs: 86_400_000, maxBytes: 67_108_864 })
  })

  test('moves event by event through a batch that was stored as one', async () => {
    const { open } = lmdbWorkbench()
    const log = await open({ window: { maxEvents: 5 } })
    const batch = await publish(log, 'a', '1', '2', '3', '4', '5')
    await publish(log, 'a', '6', '7')
    expect(await log.windows(['a'])).toMatchObject([{ events: 5, oldest: batch[2], trimmedThrough: batch[1] }])
    expect(await readOn(log, 'a', batch[1]!)).toEqual({ texts: ['3', '4', '5', '6', '7'], gaps: [] })
    expect((await readOn(log, 'a', batch[0]!)).gaps).toEqual(['expired'])
  })

  test('that is smaller than one commit keeps the newest of it', async () => {
    const { open } = lmdbWorkbench()
    const log = await open({ window: { maxEvents: 2 } })
    const places = await publish(log, 'a', '1', '2', '3', '4', '5')
    expect(await log.windows(['a'])).toMatchObject([{ events: 2, trimmedThrough: places[2], newest: places[4] }])
    expect(await readOn(log, 'a', places[2]!)).toEqual({ texts: ['4', '5'], gaps: [] })
  })

  test('is kept to when the log is opened with a smaller one', async () => {
    const { open } = lmdbWorkbench()
    const before = await open()
    await publish(before, 'a', ...Array.from({ length: 50 }, (_, index) => `${index}`))
    await before.close()
    const log = await open({ window: { maxEvents: 3 } })
    expect(await log.windows(['a'])).toMatchObject([{ events: 3 }])
    await publish(log, 'a', 'new')
    const [a] = await log.windows(['a'])
    expect((await readOn(log, 'a', a!.trimmedThrough)).texts).toEqual(['48', '49', 'new'])
  })

  test('gives its room back: a channel that is full for long does not grow its file', async () => {
    const { open, data } = lmdbWorkbench()
    const log = await open({ window: { maxEvents: 100 } })
    const fill = async () => {
      for (let round = 0; round < 30; round += 1) {
        await Promise.all(Array.from({ length: 20 }, () => publish(log, 'a', 'x'.repeat(500))))
      }
    }
    await fill()
    const { size } = statSync(data())
    await fill()
    await fill()
    expect(statSync(data()).size).toBeLessThan(1.5 * size)
  })
})

test('a channel idle for long is forgotten, and a reader older than that is told of a gap', async () => {
  const { open, environment } = lmdbWorkbench()
  const log = await open({ window: { maxAgeMs: 1000 }, forgetAfterMs: 60_000 })
  const start = await log.head()
  const [place] = await publish(log, 'a', '1')
  await passTimeUntil(environment, 10_000, async () => {
    return isAfter((await log.windows(['never there']))[0]!.trimmedThrough, origin)
  })
  expect(await log.windows(['never there'])).toMatchObject([{ trimmedThrough: place }])
  expect((await readOn(log, 'a', start)).gaps).toEqual(['expired'])
  expect((await readOn(log, 'a', place!)).gaps).toEqual([])
  await publish(log, 'a', '2')
  expect((await readOn(log, 'a', start)).gaps).toEqual(['expired'])
})

test('channels that are done cost less than 100 bytes of disk each, and this process nothing', async () => {
  const { open, environment, data } = lmdbWorkbench()
  const log = await open({ window: { maxAgeMs: 1000 } })
  let done = 0
  async function heapAfter(channels: number): Promise<number> {
    await finish(log, done, channels)
    done = channels
    return heapUsed()
  }

  const early = [await heapAfter(5000), await heapAfter(6000), await heapAfter(7000)]
  const late = [await heapAfter(18_000), await heapAfter(19_000), await heapAfter(20_000)]
  // Code that is compiled or dropped meanwhile moves each by 0.2 MB either way; what is kept of a channel is in all of them.
  expect(Math.min(...late) - Math.max(...early)).toBeLessThan(11_000 * 20)

  const database = openDatabase<Buffer, Buffer>(data(), { overlappingSync: false })
  await passTimeUntil(environment, 1000, async () => statsOf(database).entryCount < 20_010)
  const { treeLeafPageCount, treeBranchPageCount, pageSize } = statsOf(database)
  expect(((treeLeafPageCount + treeBranchPageCount) * pageSize) / 20_000).toBeLessThan(100)
  await log.close()
  await database.close()
})

type Stats = Record<'entryCount' | 'treeLeafPageCount' | 'treeBranchPageCount' | 'pageSize', number>

function statsOf(database: { getStats(): object }): Stats {
  return database.getStats() as Stats
}

/** Publishes to many channels, each once. */
async function finish(log: Log, from: number, to: number): Promise<void> {
  for (let number = from; number < to; number += 500) {
    const names = Array.from({ length: 500 }, (_, index) => `order/${number + index}`)
    await Promise.all(names.map((name) => publish(log, name, 'done')))
  }
}

async function heapUsed(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let round = 0; round < 3; round += 1) {
    collect()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

test('a channel that is ended in the very commit that would forget it stays ended', async () => {
  const { folder, environment } = lmdbWorkbench()
  let atSweep = () => {}
  const after: typeof environment.after = (ms, task) => {
    return environment.after(ms, () => {
      task()
      atSweep()
    })
  }
  const log = await lmdbLog(folder(), { window: { maxAgeMs: 1000 }, forgetAfterMs: 1000 }).open({
    ...environment,
    after,
  })
  await publish(log, 'a', '1')
  await passTimeUntil(environment, 5000, async () => (await log.windows(['a']))[0]?.events === 0)
  const ends: Promise<unknown>[] = []
  atSweep = () => void ends.push(log.end('a'))
  await passTimeUntil(environment, 5000, async () => ends.length > 0)
  await Promise.all(ends)
  await expect(publish(log, 'a', '2')).rejects.toMatchObject({ code: 'channel-ended' })
  await log.close()
})

test('a gap ends where every requested channel is whole, also channels that the page did not reach', async () => {
  const { open } = lmdbWorkbench()
  const log = await open({ window: { maxEvents: 1 } })
  const after = await log.head()
  await publish(log, 'a', '1', '2')
  await publish(log, 'b/1', '3')
  const [trimmed] = await publish(log, 'b/2', '4', '5')
  const { gap } = await log.read(['a', 'b/*'], after, await log.head(), { events: 1, bytes: 1e6 })
  expect(gap).toMatchObject({ channels: ['a'], wholeAfter: trimmed })
})
