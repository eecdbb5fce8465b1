import { closeSync, openSync, readFileSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { open as openDatabase } from 'lmdb'
import { describe, expect, test } from 'vitest'
import { checkFile } from '../../../../src/log/lmdb/files/check.ts'
import { judgeInChild } from '../../../../src/log/lmdb/files/judge.ts'
import { checkPages } from '../../../../src/log/lmdb/files/pages.ts'
import { readRoot } from '../../../../src/log/lmdb/files/roots.ts'
import { lmdbWorkbench, passTimeUntil, publish, readOn } from '../workbench.ts'

const unusual = (text: string) => `${text}-${'x'.repeat(20)}`

describe('a damaged record', () => {
  test('is a gap over what it held, and what stands around it is served', async () => {
    const { open, data } = lmdbWorkbench()
    const before = await open()
    const start = await before.head()
    for (const text of ['1', '2', '3', '4']) await publish(before, 'a', unusual(text))
    await before.close()
    damage(data(), unusual('2'))
    const log = await open()
    expect(await readOn(log, 'a', start)).toEqual({ texts: ['1', '3', '4'].map(unusual), gaps: ['expired'] })
  })

  test('at the end of a channel is a gap too', async () => {
    const { open, data } = lmdbWorkbench()
    const before = await open()
    const start = await before.head()
    for (const text of ['1', '2']) await publish(before, 'a', unusual(text))
    await before.close()
    damage(data(), unusual('2'))
    const log = await open()
    expect(await readOn(log, 'a', start)).toEqual({ texts: [unusual('1')], gaps: ['expired'] })
    await publish(log, 'a', '3')
    expect(await readOn(log, 'a', start)).toEqual({ texts: [unusual('1'), '3'], gaps: ['expired'] })
  })

  test('is no gap to a reader that has what it held', async () => {
    const { open, data } = lmdbWorkbench()
    const before = await open()
    const [, second] = [await publish(before, 'a', unusual('1')), await publish(before, 'a', unusual('2'))]
    await publish(before, 'a', '3')
    await before.close()
    damage(data(), unusual('2'))
    const log = await open()
    expect(await readOn(log, 'a', second[0]!)).toEqual({ texts: ['3'], gaps: [] })
  })

  test('goes with the others when the window moves on, and the counts are right again', async () => {
    const { open, data } = lmdbWorkbench()
    const window = { maxEvents: 4 }
    const before = await open({ window })
    for (const text of ['1', '2', '3', '4']) await publish(before, 'a', unusual(text))
    await before.close()
    damage(data(), unusual('2'))
    const log = await open({ window })
    await publish(log, 'a', '5')
    await publish(log, 'a', '6')
    const [a] = await log.windows(['a'])
    expect(a?.events).toBe(4)
    expect(await readOn(log, 'a', a!.trimmedThrough)).toEqual({
      texts: [unusual('3'), unusual('4'), '5', '6'],
      gaps: [],
    })
  })

  test('of one channel is nothing to the others', async () => {
    const { open, data } = lmdbWorkbench()
    const before = await open()
    const start = await before.head()
    await publish(before, 'a', unusual('1'))
    await publish(before, 'b', unusual('2'))
    await before.close()
    damage(data(), unusual('1'))
    const log = await open()
    const page = await log.read(['a', 'b'], start, await log.head(), { events: 10, bytes: 1e6 })
    expect(page.gap?.channels).toEqual(['a'])
    expect(await readOn(log, 'b', start)).toEqual({ texts: [unusual('2')], gaps: [] })
  })
})

describe('a damaged entry of a channel', () => {
  test('is a gap to all its readers, and the channel goes on', async () => {
    const { open, data } = lmdbWorkbench()
    const before = await open()
    const start = await before.head()
    await publish(before, 'orders/42', '1')
    await before.close()
    damage(data(), 'Corders/42', 'behind')
    const log = await open()
    expect(await readOn(log, 'orders/42', start)).toEqual({ texts: [], gaps: ['expired'] })
    const head = await log.head()
    await publish(log, 'orders/42', '2')
    expect(await readOn(log, 'orders/42', head)).toEqual({ texts: ['2'], gaps: [] })
  })

  test('whose name is damaged is a gap to readers of channels the log does not know', async () => {
    const { open, data } = lmdbWorkbench()
    const before = await open()
    const start = await before.head()
    await publish(before, 'orders/42', '1')
    await before.close()
    damage(data(), 'Corders/42', 'inside')
    const log = await open()
    expect(await readOn(log, 'orders/42', start)).toEqual({ texts: [], gaps: ['expired'] })
    expect((await readOn(log, 'orders/42', await log.head())).gaps).toEqual([])
  })

  test('that is missing is a gap too', async () => {
    const { open, data } = lmdbWorkbench()
    const before = await open()
    const start = await before.head()
    await publish(before, 'orders/42', '1')
    await before.close()
    const { root, key } = entryOf(data(), 'Corders/42')
    await root.remove(key)
    await root.close()
    expect((await readOn(await open(), 'orders/42', start)).gaps).toEqual(['expired'])
  })

  test('is noticed while the log is open, too', async () => {
    const { open, data, environment } = lmdbWorkbench()
    const log = await open()
    const start = await log.head()
    await publish(log, 'orders/42', '1')
    flipInPlace(data(), 'Corders/42', 'Corders/43')
    await passTimeUntil(environment, 3_600_000, async () => {
      return (await readOn(log, 'orders/42', start)).gaps.length > 0
    })
  })
})

describe('the retained values of a channel', () => {
  const keyed = (key: string) => ({ channel: 'a', type: 'message', data: unusual(key), key })

  test('are not given in part when one is damaged, and are whole again once it was published anew', async () => {
    const { open, data } = lmdbWorkbench()
    const before = await open({ window: { maxEvents: 1 } })
    await before.append([keyed('x'), keyed('y')], { token: '1' })
    await before.append([{ channel: 'a', type: 'message', data: 'last' }], { token: '2' })
    await before.close()
    damage(data(), unusual('x'))
    const log = await open({ window: { maxEvents: 1 } })
    expect(await log.retained(['a'])).toBeUndefined()
    await log.append([keyed('x')], { token: '3' })
    expect((await log.retained(['*']))?.map(({ key }) => key)).toEqual(['y', 'x'])
  })

  test('are not given as none when the entry of the channel is damaged', async () => {
    const { open, data } = lmdbWorkbench()
    const log = await open()
    await log.append([keyed('x')], { token: '1' })
    const { root, key, value } = entryOf(data(), 'Ca')
    value[0]! ^= 1
    await root.put(key, value)
    expect(await Promise.all([log.retained(['a']), log.retained(['*'])])).toEqual([undefined, undefined])
    await log.close()
    await root.close()
  })
})

test('when the state of the log is damaged, it is rebuilt, and a branch opens', async () => {
  const { open, data } = lmdbWorkbench()
  const before = await open()
  const start = await before.head()
  const [place] = await publish(before, 'a', '1')
  await before.close()
  const { root, key, value } = entryOf(data(), 'S')
  value[0]! ^= 1
  await root.put(key, value)
  await root.close()
  const log = await open()
  expect(log.history).toHaveLength(2)
  expect(log.history[1]?.fork).toEqual(place)
  expect((await readOn(log, 'a', start)).texts).toEqual(['1'])
})

describe('a file that cannot be a log is rejected, with advice', () => {
  test('one that is something else', async () => {
    const { open, data, folder } = lmdbWorkbench()
    await (await open({}, 'other')).close()
    await (await open()).close()
    writeFileSync(data(), 'hello '.repeat(5000))
    await expect(open()).rejects.toMatchObject({ code: 'invalid-option', message: expect.stringContaining(folder()) })
  })

  test('a database of another program', async () => {
    const { open, data } = lmdbWorkbench()
    const other = openDatabase(data(), { overlappingSync: false })
    await other.put('hello', 'world')
    await other.close()
    await expect(open()).rejects.toMatchObject({
      code: 'invalid-option',
      message: expect.stringContaining('not a log'),
    })
  })

  test('one whose end is missing', async () => {
    const { open, data } = lmdbWorkbench()
    const log = await open()
    for (let count = 0; count < 20; count += 1) await publish(log, 'a', 'x'.repeat(10_000))
    await log.close()
    truncateSync(data(), 50_000)
    await expect(open()).rejects.toMatchObject({ code: 'invalid-option', message: expect.stringContaining('its end') })
  })

  test.each([
    ['an earlier', 1],
    ['a later', 3],
    ['no', undefined],
  ])('one of %s version of Rejoin, which names both formats and stays as it was', async (_which, version) => {
    const { open, data } = lmdbWorkbench()
    await (await open()).close()
    const { root, key, value } = entryOf(data(), 'F')
    const { ByteWriter, unseal } = await import('../../../../src/log/lmdb/format/bytes.ts')
    const writer = new ByteWriter()
    writer.text(JSON.stringify({ ...JSON.parse(unseal(key, value)!.text()), version }))
    await root.put(key, writer.seal(key))
    await root.close()
    const before = readFileSync(data())
    await expect(open()).rejects.toMatchObject({
      code: 'invalid-option',
      message: expect.stringContaining(`has format ${version}, and this Rejoin writes format 2`),
    })
    expect(readFileSync(data()).equals(before)).toBe(true)
  })
})

describe('a file with more pages than are followed at the start', () => {
  async function fill() {
    const bench = lmdbWorkbench()
    const log = await bench.open({ durability: 'os' })
    for (let round = 0; round < 5; round += 1) {
      await Promise.all(Array.from({ length: 100 }, (_, index) => publish(log, `a/${round}/${index}`, 'x'.repeat(100))))
    }
    await log.close()
    return { ...bench, store: { directory: bench.folder(), isWhole: () => expect.fail('asked in this process') } }
  }

  test('is opened when LMDB can read all of it', async () => {
    const { store } = await fill()
    await expect(checkFile(store, 1)).resolves.toBeUndefined()
  })

  test('is rejected with a sentence when a page is damaged that would end the process', async () => {
    const { store, data } = await fill()
    const bytes = readFileSync(data())
    // Each page but the two roots: what its header says is gone.
    for (let at = 2 * 4096; at < bytes.length; at += 4096) bytes.fill(0, at + 16, at + 24)
    writeFileSync(data(), bytes)
    expect(checkPages(data(), (await readRoot(data()))!, 1000).kind).toBe('damaged')
    await expect(judgeInChild(data())).resolves.toBe('damaged')
    await expect(checkFile(store, 1000)).rejects.toMatchObject({
      code: 'invalid-option',
      message: expect.stringMatching(/is damaged: .+ Restore it/),
    })
  })
})

/** Changes one bit at, or right behind, every place where the text stands in the file; old pages hold it too. */
function damage(file: string, text: string, where: 'inside' | 'behind' = 'inside'): void {
  const bytes = readFileSync(file)
  let at = bytes.indexOf(text)
  expect(at).toBeGreaterThan(0)
  for (; at !== -1; at = bytes.indexOf(text, at + 1)) bytes[at + (where === 'inside' ? 1 : text.length)]! ^= 1
  writeFileSync(file, bytes)
}

/** Wherever it stands in a file that is in use. */
function flipInPlace(path: string, from: string, to: string): void {
  const bytes = readFileSync(path)
  const file = openSync(path, 'r+')
  for (let at = bytes.indexOf(from); at !== -1; at = bytes.indexOf(from, at + 1)) writeSync(file, to, at)
  closeSync(file)
}

function entryOf(file: string, name: string) {
  const root = openDatabase<Buffer, Buffer>(file, { overlappingSync: false, keyEncoding: 'binary', encoding: 'binary' })
  const key = Buffer.from(name)
  return { root, key, value: root.get(key)! }
}
