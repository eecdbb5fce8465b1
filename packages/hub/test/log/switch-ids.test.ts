import { join } from 'node:path'
import { createHub, type LogSource } from '@rejoin/hub'
import { lmdbLog, restoreLmdb } from '@rejoin/hub/lmdb'
import { memoryLog } from '@rejoin/hub/memory'
import { hlc, type IdCodec, snowflake, ulid, uuidv7 } from '@rejoin/protocol'
import { expect, onTestFinished, test } from 'vitest'
import { resumeFromEach, switchUnderLoad } from '../../../../test/support/switched-ids.ts'
import { temporaryFolder } from '../../../../test/support/temporary-folder.ts'

const window = { maxEvents: 100_000 }

function folders() {
  const { folder, remove } = temporaryFolder()
  onTestFinished(remove)
  return (name: string) => join(folder, name)
}

async function openHub(log: LogSource) {
  const hub = await createHub({ log })
  onTestFinished(() => hub.close())
  return hub
}

test.each([
  ['memory', () => memoryLog({ window })],
  ['lmdb', () => lmdbLog(folders()('log'), { window })],
])('a hub on a log in %s switches its ids under load, and nobody is alarmed', async (_, source) => {
  const hub = await openHub(source())
  const ids = await switchUnderLoad([hub], { codec: uuidv7(), version: 2 })
  const first = ids.findIndex((id) => id.startsWith('v2_'))
  expect(first).toBeGreaterThan(100)
  expect(ids.slice(first).every((id) => id.startsWith('v2_'))).toBe(true)
  await resumeFromEach([hub], ids, Math.ceil(ids.length / 20))
})

test.each<[string, IdCodec | undefined]>([
  ['without naming a codec', undefined],
  ['with the codec it was made with', snowflake({ startMs: 1_600_000_000_000 })],
  ['with the codec it was switched to', hlc({ node: 'eu1' })],
])('a folder whose ids were switched opens %s, and every id goes on', async (_, codec) => {
  const folder = folders()('log')
  const made = snowflake({ startMs: 1_600_000_000_000 })
  const before = await openHub(lmdbLog(folder, { codec: made }))
  const early = await before.publish('a', { text: '1' })
  await before.log.switchIds?.({ codec: hlc({ node: 'eu1' }) })
  const late = await before.publish('a', { text: '2' })
  await before.close()
  const hub = await openHub(lmdbLog(folder, codec ? { codec } : {}))
  const latest = await hub.publish('a', { text: '3' })
  expect(early.id).toMatch(/^\d+$/)
  expect([late.id, latest.id]).toEqual([expect.stringContaining('-eu1-'), expect.stringContaining('-eu1-')])
  for (const [from, texts] of [
    [early.id, ['2', '3']],
    [late.id, ['3']],
  ] as const) {
    const got: string[] = []
    for await (const { type, data } of hub.stream('a', { from })) {
      if (type !== 'hello') got.push(`${data}`)
      if (got.length === texts.length) break
    }
    expect(got).toEqual(texts)
  }
})

test('a backup has the formats of its moment, and a restored one writes on in the newest', async () => {
  const place = folders()
  const hub = await openHub(lmdbLog(place('log')))
  await hub.publish('a', { text: '1' })
  await hub.log.switchIds?.({ codec: ulid(), version: 2 })
  await hub.publish('a', { text: '2' })
  await hub.log.backup?.(place('backup'))
  await hub.close()
  await restoreLmdb(place('backup'), place('restored'))
  const restored = await openHub(lmdbLog(place('restored')))
  await restored.publish('a', { text: '3' })
  const held = await restored.admin.entries('a')
  expect(held.map(({ id }) => id.startsWith('v2_'))).toEqual([false, true, true])
  expect(held.map(({ id }) => id.length)).toEqual([26, 29, 29])
})

test('a log rejects a codec that it never had, and says how to switch', async () => {
  const folder = folders()('log')
  await (await openHub(lmdbLog(folder))).close()
  await expect(createHub({ log: lmdbLog(folder, { codec: uuidv7() }) })).rejects.toMatchObject({
    code: 'invalid-option',
    message: expect.stringContaining('rejoin migrate ids'),
  })
})
