import { copyFileSync } from 'node:fs'
import { createHub } from '@rejoin/hub'
import { backupLmdb, lmdbLog, restoreLmdb } from '@rejoin/hub/lmdb'
import type { Log } from '@rejoin/hub/log'
import { judgeCursor, renderId } from '@rejoin/protocol'
import { open as openDatabase } from 'lmdb'
import { expect, onTestFinished, test } from 'vitest'
import { watchFiles } from '../../../../src/log/lmdb/files/watch.ts'
import { stateKey } from '../../../../src/log/lmdb/format/keys.ts'
import { lmdbWorkbench, publish, readOn } from '../workbench.ts'

const rejection = { code: 'log-unavailable', message: expect.stringContaining('overwritten') }

// Windows does not let anybody overwrite a mapped file.
if (process.platform !== 'win32') {
  test('a log whose file is overwritten by an older copy acknowledges nothing more, and tells readers of what is lost (§2.3)', async () => {
    // The roots of the file are written in turn: the copy is an odd and an even number of commits old.
    for (const commits of [1, 2, 3]) {
      const { open, data, crash } = lmdbWorkbench()
      const log = await open()
      const held = await publishEach(log, ['1', '2'])
      crash('log', 'backup')
      const lost = await publishEach(log, ['3', '4', '5'].slice(0, commits))
      copyFileSync(data('backup'), data())
      await expect(publish(log, 'a', '6')).rejects.toMatchObject(rejection)
      await expect(log.invalidate('a')).rejects.toMatchObject(rejection)
      await expect(log.probe()).rejects.toMatchObject(rejection)
      expect(log.fault?.()).toMatchObject(rejection)
      await log.close()

      const again = await open()
      expect(await verdictsOf(again, held)).toEqual(held.map(() => 'ok'))
      expect(await verdictsOf(again, lost)).toEqual(lost.map(() => 'epoch'))
      await publish(again, 'a', '7')
      expect(await verdictsOf(again, lost)).toEqual(lost.map(() => 'epoch'))
    }
  })

  test('a hub whose file is overwritten tells its operator within a second, without a publish', async () => {
    const { folder, data, crash, environment } = lmdbWorkbench()
    const hub = await createHub({ log: lmdbLog(folder()), environment })
    onTestFinished(() => hub.close())
    const told: unknown[] = []
    hub.on('silence', (observation) => told.push(observation))
    crash('log', 'backup')
    await hub.publish('a', { text: '1' })
    await environment.advance(2000)
    expect(told).toEqual([])
    copyFileSync(data('backup'), data())
    await environment.advance(1000)
    expect(told).toMatchObject([{ cause: rejection }])
    await expect(hub.admin.probe()).rejects.toMatchObject(rejection)
  })

  test('a commit that was built on an older copy is noticed before it is acknowledged', async () => {
    for (const commits of [1, 2, 3]) {
      const { open, folder, data, crash } = lmdbWorkbench()
      await (await open()).close()
      crash('log', 'backup')
      const database = openDatabase<Buffer, Buffer>(data(), layout)
      onTestFinished(() => database.close())
      const watch = watchFiles(folder())
      onTestFinished(() => watch.close())
      for (let commit = 0; commit < commits; commit += 1) {
        await watch.commit(async () => void (await database.put(key, value)))
        expect(watch.fault()).toBeUndefined()
      }
      await watch.commit(async () => {
        copyFileSync(data('backup'), data())
        await database.put(key, value)
      })
      expect(watch.fault()).toMatchObject(rejection)
    }
  })

  test('readers hear of what is lost also when the hub was killed right after such a commit (§2.3)', async () => {
    for (const commits of [1, 2, 3]) {
      const { open, folder, data, crash } = lmdbWorkbench()
      const first = await open()
      const early = await publishEach(first, ['0'])
      await first.close()
      const second = await open()
      await publishEach(second, ['1', '2'])
      crash('log', 'backup')
      const lost = await publishEach(second, ['3', '4', '5'].slice(0, commits))
      await second.close()
      // Such a commit as no hub acknowledges: its state is that after the lost events, its events are those of the copy.
      const database = openDatabase<Buffer, Buffer>(data(), layout)
      const state = database.get(stateKey) as Buffer
      copyFileSync(data('backup'), data())
      await database.put(stateKey, state)
      await database.close()
      await backupLmdb(folder(), folder('later backup'))
      await restoreLmdb(folder('later backup'), folder('restored'))

      for (const place of ['restored', 'log']) {
        const log = await open({}, place)
        expect(await verdictsOf(log, lost), place).toEqual(lost.map(() => 'epoch'))
        expect(await verdictsOf(log, early), place).toEqual(['ok'])
        await log.close()
      }
      const log = await open()
      const [place] = await publish(log, 'a', '6')
      expect(await verdictsOf(log, [renderId(place!, log)])).toEqual(['ok'])
      await log.close()
      expect(await verdictsOf(await open(), [renderId(place!, log)])).toEqual(['ok'])
    }
  })
}

test('a commit that fails, with or without a trace in the file, is followed by others', async () => {
  const { open, folder, data } = lmdbWorkbench()
  await (await open()).close()
  const database = openDatabase<Buffer, Buffer>(data(), layout)
  onTestFinished(() => database.close())
  const watch = watchFiles(folder())
  onTestFinished(() => watch.close())
  const fail = async () => Promise.reject(new Error('the disk reports an error'))
  const put = async () => void (await database.put(key, value))
  for (const before of [async () => undefined, put]) {
    await expect(watch.commit(() => before().then(fail))).rejects.toThrow('the disk')
    expect(watch.fault()).toBeUndefined()
    await watch.commit(put)
    expect(watch.fault()).toBeUndefined()
  }
})

test('a log that was closed or killed is continued by every later one, and alarms nobody', async () => {
  const { open, crash } = lmdbWorkbench()
  let log = await open()
  const ids: string[] = []
  for (let start = 0; start < 6; start += 1) {
    ids.push(...(await publishEach(log, [`${start}`, `${start}`].slice(start % 2))))
    const place = crash(start === 0 ? 'log' : `crashed-${start - 1}`, `crashed-${start}`)
    log = await open({}, place)
    expect(await verdictsOf(log, ids)).toEqual(ids.map(() => 'ok'))
  }
  expect((await readOn(log, 'a', { ms: 0, seq: 0 })).gaps).toEqual([])
})

const layout = { keyEncoding: 'binary', encoding: 'binary', cache: false, maxDbs: 1, overlappingSync: false } as const
const key = Buffer.from('Z')
const value = Buffer.from('z')

/** In a commit of its own. */
async function publishEach(log: Log, texts: readonly string[]): Promise<string[]> {
  const ids: string[] = []
  for (const text of texts) for (const place of await publish(log, 'a', text)) ids.push(renderId(place, log))
  return ids
}

async function verdictsOf(log: Log, ids: readonly string[]): Promise<string[]> {
  const head = await log.head()
  return ids.map((id) => {
    const verdict = judgeCursor(id, { ...log, head })
    return verdict.ok ? 'ok' : verdict.reason
  })
}
