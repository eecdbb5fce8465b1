import assert from 'node:assert/strict'
import { isAfter, type Position } from '@rejoin/protocol'
import type { Log, LogBudget } from '../log/contract.ts'
import { append, atMost, type Bench, type Duties, dataOf, entry, readAll, type Stored } from './log-bench.ts'

/** Duties of a log with a budget: it holds no more than that, and readers are told what is gone. Other logs skip them. */
export const budgetDuties: Duties = {
  async 'a log within its budget lets go of nothing, and says how much of the budget is used'(bench) {
    const log = await openWithBudget(bench, 1000)
    if (!log) return
    const start = await log.head()
    for (const channel of ['a', 'b', 'c']) await append(log, [sized(channel, 1, 300)])
    assert.deepEqual(await log.budget?.(), { usedBytes: 900, maxBytes: 1000 })
    assert.equal((await readAll(log, ['a', 'b', 'c'], start)).length, 3)
  },

  async 'beyond the budget the oldest events of all channels go first, and a reader that needs them is told'(bench) {
    const log = await openWithBudget(bench, 1000)
    if (!log) return
    const start = await log.head()
    const events: Stored[] = []
    for (const [index, channel] of ['old', 'a', 'b', 'a', 'b', 'a', 'b', 'new'].entries()) {
      events.push(...(await append(log, [sized(channel, index, 200)])))
      await bench.environment.advance(1000)
    }
    await settled(log)
    const [kept, gone] = [events.slice(-5), events.slice(0, -5)]
    const lastGone = gone.at(-1) as Stored
    assert.deepEqual((await readAll(log, ['old', 'a', 'b', 'new'], lastGone.position)).map(dataOf), kept.map(dataOf))
    for (const name of ['old', 'a', 'b', '*']) {
      const { gap } = await log.read([name], start, await log.head(), atMost(100))
      assert.equal(gap?.reason, 'expired', `who reads ${name} is told`)
    }
    const { gap } = await log.read(['new'], start, await log.head(), atMost(100))
    assert.equal(gap, undefined, 'a channel that lost nothing has nothing to tell')
    assert.equal((await log.windows(['old']))[0]?.lost, 'expired')
  },

  async 'publishing goes on at the budget, for a thousand channels, and the newest event is always there'(bench) {
    const log = await openWithBudget(bench, 20_000)
    if (!log) return
    for (let round = 0; round < 10; round += 1) {
      const entries = Array.from({ length: 100 }, (_, index) => sized(`room/${round}/${index}`, round, 100))
      const last = (await append(log, entries)).at(-1) as Stored
      await bench.environment.advance(1000)
      const { usedBytes } = await settled(log)
      assert.ok(usedBytes <= 20_000, `${usedBytes} bytes are more than 20,000`)
      assert.ok(usedBytes > 15_000 || round < 2, `${usedBytes} bytes are far less than 20,000`)
      const [window] = await log.windows([last.channel])
      assert.deepEqual(window?.newest, last.position)
    }
    assert.equal((await log.windows(['*']))[0]?.bytes, (await log.budget?.())?.usedBytes)
  },

  async 'an event larger than the budget is delivered by the tail, and not kept'(bench) {
    const log = await openWithBudget(bench, 1000)
    if (!log) return
    const start = await log.head()
    const heard: string[] = []
    const tail = await log.tail(start, ({ events }) => void heard.push(...events.map(dataOf)))
    const [small, large] = [sized('a', 1, 100), sized('a', 2, 5000)]
    await append(log, [small])
    await append(log, [large])
    await settled(log)
    while (heard.length < 2) await bench.environment.advance(10)
    assert.deepEqual(heard, [small.data, large.data])
    tail.close()
    assert.equal((await log.windows(['a']))[0]?.events, 0)
    assert.equal((await log.read(['a'], start, await log.head(), atMost(10))).gap?.reason, 'expired')
    assert.equal((await readAll(log, ['a'], await log.head())).length, 0)
  },

  async 'what windows, invalidations and ends take is free in the budget again'(bench) {
    const log = await openWithBudget(bench, 10_000, { maxEvents: 2 })
    if (!log) return
    for (let number = 0; number < 6; number += 1) await append(log, [sized('a', number, 100)])
    await append(log, [sized('b', 0, 100)])
    await append(log, [sized('c', 0, 100)])
    const before = await log.windows(['a', 'b', 'c'])
    assert.equal((await log.budget?.())?.usedBytes, sumOf(before))
    await log.invalidate('a')
    await log.end('c')
    assert.deepEqual(await log.budget?.(), { usedBytes: 200, maxBytes: 10_000 })
  },

  async 'a log that is opened with a smaller budget comes within it, and one without a budget holds what is there'(
    bench,
  ) {
    const log = await openWithBudget(bench, 1_000_000)
    if (!log) return
    for (let number = 0; number < 40; number += 1) await append(log, [sized(`room/${number}`, number, 100)])
    await log.close()
    // Events of one millisecond may be equally old.
    bench.environment.stepClock(10)
    const free = await bench.open(lasting)
    if ((await free.windows(['*']))[0]?.events !== 40) return
    for (let number = 40; number < 50; number += 1) await append(free, [sized(`room/${number}`, number, 100)])
    assert.equal(await free.budget?.(), undefined)
    await free.close()
    const small = await bench.open(lasting, undefined, 2000)
    // The sweep finds the channels that were not counted, one after the other.
    const isCounted = async () => {
      const [all] = await small.windows(['*'])
      const budget = await small.budget?.()
      return budget !== undefined && budget.usedBytes <= budget.maxBytes && all?.bytes === budget.usedBytes
    }
    for (let round = 0; round < 1000 && !(await isCounted()); round += 1) {
      await bench.environment.advance(1000)
      await small.probe()
    }
    assert.ok(await isCounted(), 'what it says is used is not what it holds')
    const { usedBytes } = await settled(small)
    assert.ok(usedBytes <= 2000 && usedBytes >= 1800, `it holds ${usedBytes} bytes`)
    assert.equal((await small.windows(['room/49']))[0]?.events, 1)
    assert.equal((await small.windows(['room/0']))[0]?.events, 0)
  },

  async 'what goes for the budget is never served past, and every reader gets all of the rest'(bench) {
    const log = await openWithBudget(bench, 3000)
    if (!log) return
    const names = ['a', 'b', 'c']
    const all: Stored[] = []
    const cursors: Position[] = [await log.head()]
    for (let number = 0; number < 60; number += 1) {
      all.push(...(await append(log, [sized(names[number % 3] as string, number, 50 + 7 * (number % 11))])))
      cursors.push((all.at(-1) as Stored).position)
      if (number % 5 === 0) await bench.environment.advance(1000)
    }
    await settled(log)
    for (const cursor of cursors) {
      for (const read of [...names.map((name) => [name]), names, ['*']]) {
        const page = await log.read(read, cursor, await log.head(), atMost(1000))
        const due = all.filter(({ channel, position }) => isAfter(position, cursor) && isIn(read, channel))
        if (page.gap) {
          assert.ok(due.length > page.events.length, 'a gap is told of where something is gone')
          continue
        }
        assert.deepEqual(page.events.map(dataOf), due.map(dataOf))
      }
    }
  },
}

const lasting = { maxAgeMs: 24 * 3_600_000, maxEvents: 10_000 }

/** Undefined for a log that cannot have a budget. */
async function openWithBudget({ open }: Bench, maxBytes: number, window = {}): Promise<Log | undefined> {
  const log = await open({ ...lasting, ...window }, undefined, maxBytes)
  return log.budget && log
}

/** An event that counts for `bytes` bytes. */
function sized(channel: string, number: number, bytes: number) {
  const { type } = entry(channel, '')
  return entry(channel, `${number}`.padEnd(bytes - type.length, '.'))
}

/** Waits until the log is within its budget. A log may take several steps for that, and each `probe` lets it take one. */
async function settled(log: Log): Promise<LogBudget> {
  for (let tries = 0; tries < 1000; tries += 1) {
    const budget = (await log.budget?.()) as LogBudget
    if (budget.usedBytes <= budget.maxBytes) return budget
    await log.probe()
  }
  return assert.fail('it does not come within its budget')
}

function sumOf(windows: readonly { readonly bytes: number }[]): number {
  return windows.reduce((sum, { bytes }) => sum + bytes, 0)
}

function isIn(names: readonly string[], channel: string): boolean {
  return names.includes('*') || names.includes(channel)
}
