import assert from 'node:assert/strict'
import type { Log } from '../log/contract.ts'
import type { Bench, Duties } from './log-bench.ts'

/** Duties of a log by which its hubs agree on texts, and of one that keeps their orders. Other logs skip them. */
export const valueDuties: Duties = {
  'a text is put where none stands, and everybody gets the text that stands': whenPut(async (log) => {
    assert.equal(await log.putIfAbsent('key', 'mine'), 'mine')
    assert.equal(await log.putIfAbsent('key', 'yours'), 'mine')
    assert.equal(await log.putIfAbsent('key', 'mine'), 'mine')
    assert.equal(await log.putIfAbsent('another key', 'yours'), 'yours')
  }),

  'of many callers at once, exactly one puts its text': whenPut(async (log) => {
    const callers = Array.from({ length: 50 }, (_, number) => `caller ${number}`)
    const standing = await Promise.all(callers.map((text) => log.putIfAbsent('race', text, 60_000)))
    assert.equal(new Set(standing).size, 1)
    assert.ok(callers.includes(standing[0] as string))
  }),

  'a text goes when its time has passed, and one without a time stays': whenPut(async (log, { environment }) => {
    await log.putIfAbsent('short', 'first', 1000)
    await log.putIfAbsent('lasting', 'first')
    await environment.advance(999)
    assert.equal(await log.putIfAbsent('short', 'second', 1000), 'first')
    await environment.advance(1)
    assert.equal(await log.putIfAbsent('short', 'second', 1000), 'second')
    await environment.advance(600_000)
    assert.equal(await log.putIfAbsent('lasting', 'second'), 'first')
  }),

  'a text stands after a close and an open': whenPut(async (log, { open, environment }) => {
    await log.putIfAbsent('used', 'first', 60_000)
    await log.putIfAbsent('lasting', 'first')
    await log.close()
    await environment.advance(1000)
    const later = await open()
    assert.equal(await later.putIfAbsent?.('used', 'second', 60_000), 'first')
    assert.equal(await later.putIfAbsent?.('lasting', 'second'), 'first')
  }),

  async 'the clock of the log goes on with time'({ open, environment }) {
    const log = await open()
    if (!log.clock) return
    const before = await log.clock()
    await environment.advance(1000)
    assert.equal((await log.clock()) - before, 1000)
  },

  async 'an order is read by whoever opens the log later, in order, and only those after the one it has'({ open }) {
    const log = await open()
    if (!log.orders) return
    const [one, two] = [await post(log, 'one'), await post(log, 'two')]
    await log.close()
    const later = await open()
    const read = async (after: string) => (await later.orders?.({ after, forMs: 1000 }))?.orders
    assert.deepEqual(await read(''), [
      { id: one, order: 'one' },
      { id: two, order: 'two' },
    ])
    assert.deepEqual(await read(one), [{ id: two, order: 'two' }])
    const three = await post(later, 'three')
    assert.deepEqual(await read(two), [{ id: three, order: 'three' }])
    assert.deepEqual(await read(three), [])
  },
}

async function post(log: Log, order: string): Promise<string> {
  const page = await log.orders?.({ after: '', forMs: 1000, order })
  assert.ok(page?.posted, 'a posted order has an id')
  return page.posted
}

type PuttingLog = Log & Required<Pick<Log, 'putIfAbsent'>>

function whenPut(run: (log: PuttingLog, bench: Bench) => Promise<void>): Duties[string] {
  return async (bench) => {
    const log = await bench.open()
    if (log.putIfAbsent) await run(log as PuttingLog, bench)
  }
}
