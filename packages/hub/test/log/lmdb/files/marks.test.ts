import { createHub, type Hub } from '@rejoin/hub'
import { createSubscription, type Start } from '@rejoin/hub/internal'
import { backupLmdb, type LmdbLogOptions, lmdbLog, restoreLmdb } from '@rejoin/hub/lmdb'
import type { Log } from '@rejoin/hub/log'
import { type IdCodec, isAfter, origin, type Position, sequence, snowflake, ulid, uuidv7 } from '@rejoin/protocol'
import { open as openDatabase, type RootDatabase } from 'lmdb'
import { describe, expect, onTestFinished, test } from 'vitest'
import { unseal } from '../../../../src/log/lmdb/format/bytes.ts'
import { formatKey } from '../../../../src/log/lmdb/format/keys.ts'
import { sealFormat } from '../../../../src/log/lmdb/format/log-format.ts'
import { mostMarks } from '../../../../src/log/lmdb/format/marks.ts'
import { lmdbWorkbench, publish } from '../workbench.ts'

// A restored copy lacks what was published after it was made (§2.3.8): that loss is a mark between two positions. What the copy
// has stays readable, and nobody crosses the mark without being told.

const codecs: readonly IdCodec[] = [ulid(), uuidv7(), snowflake(), sequence()]

describe.each(codecs.map((codec) => [codec.name, codec] as const))('a restored log with %s ids', (_name, codec) => {
  test('keeps all events of the backup, and each reader that crosses the loss is told there', async () => {
    const bench = restorable({ codec })
    const before = await bench.hubIn('first')
    const held = numbered(0, 50)
    const ids = await publishAll(before, 'a', held)
    await publishAll(before, 'b/1', ['of b'])
    await before.log.backup?.(bench.folder('backup'))
    const [lost] = await publishAll(before, 'a', ['lost'])
    await before.close()
    await restoreLmdb(bench.folder('backup'), bench.folder('second'))
    const hub = await bench.hubIn('second')
    for (const news of [[], ['new 1'], ['new 1', 'new 2']]) {
      if (news.length > 0) await publishAll(hub, 'a', news.slice(-1))
      const after = ['epoch', ...news]
      expect(await past(hub, ['a'], { from: 'earliest' })).toEqual([...held, ...after])
      expect(await past(hub, ['a', 'b/*'], { from: 'earliest' })).toEqual([...held, 'of b', ...after])
      expect(await past(hub, ['*'], { from: 'earliest' })).toEqual([...held, 'of b', ...after])
      expect(await past(hub, ['a'], at(ids[39]))).toEqual([...held.slice(40), ...after])
      expect(await past(hub, ['a'], at(ids[49]))).toEqual(after)
      expect(await past(hub, ['never seen'], at(ids[49]))).toEqual(['epoch'])
      // This one may have events that are newer than those behind the mark, so it goes on at the head.
      expect(await past(hub, ['a'], at(lost))).toEqual(['epoch'])
      expect(await past(hub, ['a'], { from: 'last', events: news.length + 2 })).toEqual([...held.slice(-2), ...after])
    }
    expect(await past(hub, ['a'], { from: 'last', events: 2 })).toEqual(['new 1', 'new 2'])
    expect(await hub.admin.window('a')).toMatchObject({ events: 52 })
  })

  test('tells nobody of the restore who came after it, and goes on over any number of starts', async () => {
    const bench = restorable({ codec })
    await publishAll(await bench.hubIn('first'), 'a', ['1'])
    const restored = await bench.restore('first', 'second')
    const [id] = await publishAll(restored, 'a', ['2'])
    await restored.close()
    await (await bench.hubIn('second')).close()
    const hub = await bench.hubIn('second')
    await publishAll(hub, 'a', ['3'])
    expect(await past(hub, ['a'], at(id))).toEqual(['3'])
    expect(await past(hub, ['a'], { from: 'earliest' })).toEqual(['1', 'epoch', '2', '3'])
  })

  test('can be backed up and restored again: each loss is told in its place', async () => {
    const bench = restorable({ codec })
    const first = await bench.hubIn('first')
    const [one] = await publishAll(first, 'a', ['1'])
    const second = await bench.restore('first', 'second')
    const [two] = await publishAll(second, 'a', ['2'])
    const third = await bench.restore('second', 'third')
    await publishAll(third, 'a', ['3'])
    expect(await past(third, ['a'], { from: 'earliest' })).toEqual(['1', 'epoch', '2', 'epoch', '3'])
    expect(await past(third, ['*'], at(one))).toEqual(['epoch', '2', 'epoch', '3'])
    expect(await past(third, ['a'], at(two))).toEqual(['epoch', '3'])
    // Nothing lies between these two marks, so the reader is told once.
    await bench.restore('third', 'fourth')
    const fifth = await bench.restore('fourth', 'fifth')
    expect(await past(fifth, ['a'], at(two))).toEqual(['epoch', '3', 'epoch'])
  })
})

test('a copy of a log without events tells readers of its one id, and nobody after that', async () => {
  const bench = restorable()
  const first = await bench.hubIn('first')
  const head = await first.cursor('a')
  const hub = await bench.restore('first', 'second')
  const fresh = await hub.cursor('a')
  await publishAll(hub, 'a', ['new'])
  expect(await past(hub, ['a'], at(head))).toEqual(['epoch', 'new'])
  expect(await past(hub, ['a'], at(fresh))).toEqual(['new'])
})

test('a crash right after a copy was opened leaves the mark, and a second start makes no other', async () => {
  const { open, folder, crash } = lmdbWorkbench()
  const first = await open()
  const [before] = await publish(first, 'a', '1')
  await first.backup?.(folder('backup'))
  await restoreLmdb(folder('backup'), folder('restored'))
  await open({}, 'restored')
  const log = await open({}, crash('restored'))
  await publish(log, 'a', '2')
  expect(await walk(log, ['a'])).toEqual(['1', 'mark', '2'])
  expect(await walk(log, ['*'], before)).toEqual(['mark', '2'])
})

test('ids that were switched on both sides of a mark stay good', async () => {
  const bench = restorable({ codec: ulid() })
  const first = await bench.hubIn('first')
  const [one] = await publishAll(first, 'a', ['1'])
  await first.log.switchIds?.({ codec: uuidv7() })
  const [two] = await publishAll(first, 'a', ['2'])
  const hub = await bench.restore('first', 'second', {})
  await publishAll(hub, 'a', ['3'])
  await hub.log.switchIds?.({ codec: ulid(), version: 2 })
  const [four] = await publishAll(hub, 'a', ['4'])
  await hub.close()
  const again = await bench.hubIn('second', {})
  expect(await past(again, ['a'], at(one))).toEqual(['2', 'epoch', '3', '4'])
  expect(await past(again, ['a'], at(two))).toEqual(['epoch', '3', '4'])
  expect(await past(again, ['a'], at(four))).toEqual([])
})

test('a budget that takes the events before a mark takes the mark with them: the reader is told once', async () => {
  const bench = restorable({ maxBytes: 2000 })
  const first = await bench.hubIn('first')
  const [one] = await publishAll(first, 'a', ['1', '2'])
  await publishAll(first, 'b', ['1'])
  const hub = await bench.restore('first', 'second')
  for (let count = 0; count < 8; count += 1) await publishAll(hub, 'c', ['x'.repeat(400)])
  await publishAll(hub, 'a', ['3'])
  await expect.poll(() => past(hub, ['a'], at(one))).toEqual(['epoch'])
  await publishAll(hub, 'a', ['4'])
  expect(await past(hub, ['a'], { from: 'earliest' })).toEqual(['epoch', '3', '4'])
})

test('a tail that is opened before a mark says that it goes on behind it', async () => {
  const { open, folder } = lmdbWorkbench()
  const first = await open()
  await publish(first, 'a', '1')
  await first.backup?.(folder('backup'))
  await restoreLmdb(folder('backup'), folder('restored'))
  const log = await open({}, 'restored')
  const mark = await log.head()
  await publish(log, 'a', '2')
  const batches: unknown[] = []
  await log.tail(
    origin,
    ({ after, events }) =>
      void batches.push(
        after,
        events.map(({ data }) => data),
      ),
  )
  expect(batches).toEqual([mark, ['2']])
})

test('invalidations and ends behind a mark name it as the entry before them, and retained values survive it', async () => {
  const { open, folder } = lmdbWorkbench()
  const first = await open()
  await first.append([{ channel: 'a', type: 'message', data: '1', key: 'k' }], { token: 'keyed' })
  await publish(first, 'b', '1')
  await first.backup?.(folder('backup'))
  await restoreLmdb(folder('backup'), folder('restored'))
  const log = await open({}, 'restored')
  const mark = await log.head()
  expect((await log.retained(['a']))?.map(({ data }) => data)).toEqual(['1'])
  expect((await log.end('a')).previous).toEqual(mark)
  expect((await log.invalidate('b')).previous).toEqual(mark)
  expect(await walk(log, ['a'])).toEqual(['1', 'mark'])
  expect(await walk(log, ['b'])).toEqual(['forced'])
})

test('a damaged record before a mark is told, and so is the mark', async () => {
  const { open, folder, data } = lmdbWorkbench()
  const first = await open()
  for (const text of ['1', '2', '3']) await publish(first, 'a', text)
  await first.backup?.(folder('backup'))
  await restoreLmdb(folder('backup'), folder('restored'))
  const restored = await open({}, 'restored')
  await publish(restored, 'a', '4')
  await restored.close()
  const root = openDatabase<Buffer, Buffer>(data('restored'), { keyEncoding: 'binary', encoding: 'binary' })
  const records = [...root.getRange({ start: Buffer.from('E'), end: Buffer.from('F') })]
  const second = records[1]!
  const wrong = Buffer.from(second.value)
  wrong.writeUInt8(wrong.readUInt8(wrong.length - 1) ^ 1, wrong.length - 1)
  await root.put(second.key, wrong)
  await root.close()
  expect(await walk(await open({}, 'restored'), ['a'])).toEqual(['1', 'expired', '3', 'mark', '4'])
})

test('marks stay few: readers from before a forgotten mark are told, of channels known and unknown', async () => {
  const { open, folder, data, environment } = lmdbWorkbench()
  const first = await open()
  const [before] = await publish(first, 'a', '0')
  await first.backup?.(folder('backup'))
  await restoreLmdb(folder('backup'), folder('restored'))
  const restored = await open({}, 'restored')
  const [one] = await publish(restored, 'a', '1')
  await environment.advance(10_000)
  await publish(restored, 'a', '2')
  await restored.close()
  const root = openDatabase<Buffer, Buffer>(data('restored'), { keyEncoding: 'binary', encoding: 'binary' })
  const { formats, history } = restored
  const others = Array.from({ length: mostMarks - 1 }, (_, index) => ({ ms: one!.ms + 1 + index, seq: 0 }))
  const marks = [...marksIn(root), ...others]
  await root.put(formatKey, sealFormat(formatKey, { formats, history, marks }))
  await root.close()
  await backupLmdb(folder('restored'), folder('second backup'))
  await restoreLmdb(folder('second backup'), folder('again'))
  const log = await open({}, 'again')
  expect((await walk(log, ['a'])).slice(0, 4)).toEqual(['0', 'expired', '1', 'mark'])
  for (const name of ['unknown', '*']) expect((await walk(log, [name], before))[0]).toBe('expired')
  await log.close()
  const stored = openDatabase<Buffer, Buffer>(data('again'), { keyEncoding: 'binary', encoding: 'binary' })
  expect(marksIn(stored)).toHaveLength(mostMarks)
  await stored.close()
})

test('only a log with marks has the format that earlier versions reject', async () => {
  const { open, folder, data } = lmdbWorkbench()
  const log = await open()
  await log.backup?.(folder('backup'))
  await log.close()
  await restoreLmdb(folder('backup'), folder('restored'))
  await (await open({}, 'restored')).close()
  for (const [place, version, count] of [
    ['log', 2, 0],
    ['restored', 3, 1],
  ] as const) {
    const root = openDatabase<Buffer, Buffer>(data(place), { keyEncoding: 'binary', encoding: 'binary' })
    expect([formatIn(root).version, marksIn(root).length]).toEqual([version, count])
    await root.close()
  }
})

function formatIn(root: RootDatabase<Buffer, Buffer>): { version: number; marks?: Position[] } {
  return JSON.parse(unseal(formatKey, root.get(formatKey)!)!.text())
}

const marksIn = (root: RootDatabase<Buffer, Buffer>) => formatIn(root).marks ?? []

function restorable(options: LmdbLogOptions = {}) {
  const { folder } = lmdbWorkbench()
  const hubs = new Map<string, Hub>()
  let copies = 0
  const hubIn = async (place: string, own = options) => {
    const hub = await createHub({ log: lmdbLog(folder(place), own) })
    hubs.set(place, hub)
    onTestFinished(() => hub.close())
    return hub
  }
  return {
    folder,
    hubIn,
    /** Makes a backup of a log, loses an event, and opens the backup in another place. */
    async restore(from: string, to: string, own = options): Promise<Hub> {
      copies += 1
      const backup = folder(`backup ${copies}`)
      const hub = hubs.get(from) as Hub
      await hub.log.backup?.(backup)
      await hub.publish('a', { text: 'lost' })
      await hub.close()
      await restoreLmdb(backup, folder(to))
      return hubIn(to, own)
    },
  }
}

const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `${from + index}`)

const at = (cursor: string | null | undefined): Start => ({ from: 'cursor', cursor: cursor as string })

async function publishAll(hub: Hub, channel: string, texts: readonly string[]): Promise<string[]> {
  const ids: string[] = []
  for (const text of texts) ids.push((await hub.publish(channel, { text })).id)
  return ids
}

async function past(hub: Hub, channels: readonly string[], start: Start): Promise<string[]> {
  const answer = await hub.port.poll({ subscription: createSubscription(channels), start }, { waitMs: 0 })
  if (!('events' in answer)) throw new Error(answer.reason)
  return answer.events.flatMap(({ type, data }) => {
    if (type === 'sync-required') return [(JSON.parse(data) as { reason: string }).reason]
    return type === 'message' ? [data] : []
  })
}

/** The data of all events, and each mark or gap in its place. */
async function walk(log: Log, selectors: readonly string[], start = origin): Promise<string[]> {
  const found: string[] = []
  const head = await log.head()
  for (let after = start; isAfter(head, after); ) {
    const page = await log.read(selectors, after, head, { events: 10, bytes: 1e6 })
    found.push(...page.events.map(({ data }) => data))
    if (page.gap) found.push(page.gap.isMark ? 'mark' : page.gap.reason)
    after = page.gap?.wholeAfter ?? page.completeThrough
  }
  return found
}
