import { closeSync, openSync, readFileSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { open as openDatabase } from 'lmdb'
import { describe, expect, onTestFinished, test } from 'vitest'
import { checkFile } from '../../../../src/log/lmdb/files/pages.ts'
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
    ['a later', 4],
    ['no', undefined],
  ])('one of %s version of Rejoin, which names all formats and stays as it was', async (_which, version) => {
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
      message: expect.stringContaining(`has format ${version}, and this Rejoin reads formats 2 and 3`),
    })
    expect(readFileSync(data()).equals(before)).toBe(true)
  })
})

test('a file with one wrong bit in the structure of a page in use is rejected', async () => {
  const { open, data, folder } = lmdbWorkbench()
  const log = await open({ durability: 'os' })
  for (let number = 0; number < 60; number += 1) await publish(log, `a/${number}`, 'x'.repeat(100 * (number % 3)))
  await log.close()
  await checkFile(folder())
  const bytes = readFileSync(data())
  const file = openSync(data(), 'r+')
  onTestFinished(() => closeSync(file))
  const missed: string[] = []
  for (const { at, bits } of structureOf(bytes)) {
    for (const bit of bits) {
      writeSync(file, Buffer.from([bytes[at]! ^ (1 << bit)]), 0, 1, at)
      await checkFile(folder()).then(
        () => missed.push(`${at % 4096} in page ${Math.floor(at / 4096)}, bit ${bit}`),
        (error) => expect(error).toMatchObject({ code: 'invalid-option' }),
      )
    }
    writeSync(file, bytes, at, 1, at)
  }
  expect(missed).toEqual([])
})

/**
 * The bytes of pages in use by which LMDB finds its way: their numbers, bounds and lists of nodes, and the sizes of the nodes of
 * leaves. The layout follows MDB_page and MDB_node in mdb.c.
 */
function structureOf(file: Buffer): { at: number; bits: number[] }[] {
  const pageBytes = 4096
  const root = [0, pageBytes].sort((a, b) => Number(file.readBigUInt64LE(b + 152) - file.readBigUInt64LE(a + 152)))[0]!
  const found: { at: number; bits: number[] }[] = []
  const add = (from: number, length: number, bits = [0, 1, 2, 3, 4, 5, 6, 7]) => {
    for (let at = from; at < from + length; at += 1) found.push({ at, bits })
  }
  const follow = (number: number, levels: number) => {
    const page = number * pageBytes
    const lower = file.readUInt16LE(page + 20)
    add(page, 8)
    add(page + 20, 4 + lower)
    for (let index = 0; index < lower / 2; index += 1) {
      const node = page + 24 + file.readUInt16LE(page + 24 + 2 * index)
      if (levels > 1) {
        follow(file.readUInt32LE(node), levels - 1)
        continue
      }
      // Nodes have an even length, so a size may be wrong by one. The checksums cover keys and values, and tell.
      for (const size of [node, node + 6]) {
        add(size, 1, [1, 2, 3, 4, 5, 6, 7])
        add(size + 1, 1)
      }
      add(node + 2, 4)
    }
  }
  follow(Number(file.readBigUInt64LE(root + 96 + 40)), file.readUInt16LE(root + 96 + 6))
  return found
}

describe('a file with a page that LMDB would die of', () => {
  /** Each page but the two roots: what its header says is gone. */
  async function damagePages() {
    const bench = lmdbWorkbench()
    const log = await bench.open({ durability: 'os' })
    for (let round = 0; round < 5; round += 1) {
      await Promise.all(Array.from({ length: 100 }, (_, index) => publish(log, `a/${round}/${index}`, 'x'.repeat(100))))
    }
    await log.close()
    await checkFile(bench.folder())
    const bytes = readFileSync(bench.data())
    for (let at = 2 * 4096; at < bytes.length; at += 4096) bytes.fill(0, at + 16, at + 24)
    writeFileSync(bench.data(), bytes)
    return bench
  }

  test('is rejected with a sentence, and stays as it was', async () => {
    const { open, data } = await damagePages()
    const before = readFileSync(data())
    await expect(open()).rejects.toMatchObject({
      code: 'invalid-option',
      message: expect.stringMatching(/is damaged: .+ Restore it/),
    })
    expect(readFileSync(data()).equals(before)).toBe(true)
  })

  test('is not looked for in a file with more pages than a start has time for', async () => {
    const { folder, data } = await damagePages()
    await expect(checkFile(folder(), 1)).resolves.toBeUndefined()
    // A root that counts a million leaves too many does not make the file one of these.
    const bytes = readFileSync(data())
    for (const root of [0, 4096]) bytes.writeUInt32LE(1_000_000, root + 96 + 16)
    writeFileSync(data(), bytes)
    await expect(checkFile(folder())).rejects.toMatchObject({ code: 'invalid-option' })
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
