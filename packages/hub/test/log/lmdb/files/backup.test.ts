import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createHub, type Hub } from '@rejoin/hub'
import { createSubscription, type PollAnswer, type Start } from '@rejoin/hub/internal'
import { backupLmdb, lmdbLog, restoreLmdb } from '@rejoin/hub/lmdb'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../../../../../test/support/temporary-folder.ts'
import { lmdbWorkbench, publish, readOn } from '../workbench.ts'

test('a backup that is made while events are published is the log of one moment', async () => {
  const { place, hubIn } = await workplace()
  const hub = await hubIn('log')
  const publishers = [0, 1, 2, 3].map((number) => keepPublishing(hub, number))
  await Promise.all(publishers.map((publisher) => publisher.has(50)))
  const before = publishers.map((publisher) => publisher.acknowledged)
  await hub.log.backup?.(place('backup'))
  await Promise.all(publishers.map((publisher) => publisher.has(publisher.acknowledged + 50)))
  await Promise.all(publishers.map((publisher) => publisher.stop()))
  const after = publishers.map((publisher) => publisher.acknowledged)
  await hub.close()

  await restoreLmdb(place('backup'), place('restored'))
  const restored = await hubIn('restored')
  const ids: unknown[] = []
  for (const number of publishers.keys()) {
    const frames = await readAll(restored, `load/${number}`)
    const held = eventsIn(frames).map(({ data }) => Number(data))
    expect(held, 'no event without the ones before it').toEqual(held.map((_, index) => index))
    expect(held.length).toBeGreaterThanOrEqual(before[number] as number)
    expect(held.length).toBeLessThan(after[number] as number)
    ids.push(...eventsIn(frames).map(({ id }) => id))
  }
  const together = eventsIn(await readAll(restored, 'load/*')).map(({ id }) => id)
  expect(together).toEqual(ids.sort())
})

test('every reader with an id from before the restore is told of a gap, once it has what the backup holds', async () => {
  const { place, hubIn } = await workplace()
  const hub = await hubIn('log')
  const early = await hub.publish('orders', { data: 1 })
  const last = await hub.publish('orders', { data: 2 })
  await hub.log.backup?.(place('backup'))
  const lost = await hub.publish('orders', { data: 3 })
  await hub.close()

  await restoreLmdb(place('backup'), place('restored'))
  for (const start of ['first', 'second']) {
    const restored = await hubIn('restored')
    for (const { id } of [last, lost]) {
      const [hello, sync] = await readFirst(restored, id)
      expect(JSON.parse(hello?.data as string), `${start} start`).toMatchObject({ resumed: false })
      expect(JSON.parse(sync?.data as string)).toMatchObject({ reason: 'epoch', requested: id })
    }
    const [hello, event, sync] = await readFirst(restored, early.id)
    expect(JSON.parse(hello?.data as string), `${start} start`).toMatchObject({ resumed: true })
    expect(event).toMatchObject({ id: last.id, data: '2' })
    expect(JSON.parse(sync?.data as string)).toMatchObject({ reason: 'epoch' })
    await restored.close()
  }
})

test('a reader of the restored log resumes as ever, also after the next restart', async () => {
  const { place, hubIn } = await workplace()
  const hub = await hubIn('log')
  await hub.publish('orders', { data: 1 })
  await hub.log.backup?.(place('backup'))
  await hub.close()
  await restoreLmdb(place('backup'), place('restored'))
  const restored = await hubIn('restored')
  const { id } = await restored.publish('orders', { data: 2 })
  await restored.close()
  const [hello] = await readFirst(await hubIn('restored'), id)
  expect(JSON.parse(hello?.data as string)).toMatchObject({ resumed: true })
})

test('a backup that was put back by hand tells readers too, because the copy knows that it is one', async () => {
  const { place, hubIn } = await workplace()
  const hub = await hubIn('log')
  const { id } = await hub.publish('orders', { data: 1 })
  await hub.log.backup?.(place('backup'))
  await hub.close()
  const [, sync] = await readFirst(await hubIn('backup'), id)
  expect(JSON.parse(sync?.data as string)).toMatchObject({ reason: 'epoch' })
})

test('a restore leaves the backup as it is, so it can be restored again', async () => {
  const { folder, open } = lmdbWorkbench()
  const log = await open()
  await publish(log, 'a', 'one', 'two')
  await log.close()
  await backupLmdb(folder(), folder('backup'))
  const before = readFileSync(join(folder('backup'), 'data.mdb'))
  for (const place of ['first', 'second']) {
    await restoreLmdb(folder('backup'), folder(place))
    const restored = await open({}, place)
    const { texts } = await readOn(restored, 'a', { ms: 0, seq: 0 })
    expect(texts).toEqual(['one', 'two'])
  }
  expect(readFileSync(join(folder('backup'), 'data.mdb')).equals(before)).toBe(true)
  expect(readdirSync(folder('backup'))).toEqual(['data.mdb'])
})

test('a backup and a restore tell how far they are, up to the end', async () => {
  const { folder, open } = lmdbWorkbench()
  const log = await open()
  await publish(log, 'a', 'x'.repeat(100_000))
  const told: number[] = []
  const onProgress = ({ copiedBytes, totalBytes }: { copiedBytes: number; totalBytes: number }) =>
    void told.push(copiedBytes / totalBytes)
  const { bytes, through } = (await log.backup?.(folder('backup'), { onProgress })) ?? {}
  expect(bytes).toBeGreaterThan(100_000)
  expect(through).toEqual(await log.head())
  expect(told.at(-1)).toBe(1)
  expect(Math.max(...told)).toBe(1)
})

test('nothing is overwritten: neither a log by a backup nor by a restore', async () => {
  const { folder, open } = lmdbWorkbench()
  const log = await open()
  await publish(log, 'a', 'one')
  const taken = { code: 'invalid-option', message: expect.stringContaining('There is a log in') }
  await expect(log.backup?.(folder())).rejects.toMatchObject(taken)
  await log.backup?.(folder('backup'))
  await expect(restoreLmdb(folder('backup'), folder())).rejects.toMatchObject(taken)
})

test('a folder without a log, and a file that is none, are rejected and leave nothing behind', async () => {
  const { folder } = lmdbWorkbench()
  const missing = { code: 'invalid-option', message: expect.stringContaining('There is no log in') }
  await expect(backupLmdb(folder('none'), folder('backup'))).rejects.toMatchObject(missing)
  await expect(restoreLmdb(folder('none'), folder('restored'))).rejects.toMatchObject(missing)
  mkdirSync(folder('foreign'), { recursive: true })
  writeFileSync(join(folder('foreign'), 'data.mdb'), 'this is not a log')
  await expect(restoreLmdb(folder('foreign'), folder('restored'))).rejects.toMatchObject({ code: 'invalid-option' })
  expect(existsSync(join(folder('restored'), 'data.mdb'))).toBe(false)
})

async function workplace() {
  const { folder, remove } = temporaryFolder()
  const hubs: Hub[] = []
  onTestFinished(async () => {
    await Promise.all(hubs.map((hub) => hub.close()))
    remove()
  })
  const place = (name: string) => join(folder, name)
  return {
    place,
    async hubIn(name: string): Promise<Hub> {
      const hub = await createHub({ log: lmdbLog(place(name)) })
      hubs.push(hub)
      return hub
    },
  }
}

/** Publishes 0, 1, 2 … until it is stopped. */
function keepPublishing(hub: Hub, number: number) {
  let acknowledged = 0
  let isStopped = false
  const waiting: { count: number; resolve(): void }[] = []
  const done = (async () => {
    while (!isStopped) {
      await hub.publish(`load/${number}`, { data: acknowledged })
      acknowledged += 1
      for (const { count, resolve } of waiting) if (acknowledged >= count) resolve()
    }
  })()
  return {
    get acknowledged() {
      return acknowledged
    },
    has: (count: number) => new Promise<void>((resolve) => waiting.push({ count, resolve })),
    stop() {
      isStopped = true
      return done
    },
  }
}

function eventsIn(frames: PollAnswer['events']) {
  return frames.filter(({ type }) => type === 'message')
}

async function readAll(hub: Hub, name: string) {
  const subscription = createSubscription([name])
  const frames: PollAnswer['events'][number][] = []
  for (let start: Start = { from: 'earliest' }; ; ) {
    const answer = await hub.port.poll({ subscription, start }, { waitMs: 0 })
    if (!('events' in answer)) throw new Error('The poll was rejected.')
    frames.push(...answer.events)
    if (eventsIn(answer.events).length === 0) return frames
    start = { from: 'cursor', cursor: answer.cursor as string }
  }
}

async function readFirst(hub: Hub, cursor: string) {
  const answer = await hub.port.poll(
    { subscription: createSubscription(['orders']), start: { from: 'cursor', cursor } },
    { waitMs: 0 },
  )
  if (!('events' in answer)) throw new Error('The poll was rejected.')
  return answer.events
}
