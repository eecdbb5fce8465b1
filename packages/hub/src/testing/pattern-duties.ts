import assert from 'node:assert/strict'
import { origin } from '@rejoin/protocol'
import { append, appendAll, atMost, type Duties, dataOf, entry, readAll, type Stored } from './log-bench.ts'
import { createRandom } from './virtual-environment.ts'

/** Duties towards readers of patterns. */
export const patternDuties: Duties = {
  async 'a pattern gives the events of all channels below it, in position order, and no others'({ open }) {
    const log = await open()
    await appendAll(log, ['orders/1', 'orders', 'orders/2/eu', 'ordersx/1', 'stock/1', 'orders/1'])
    assert.deepEqual((await readAll(log, ['orders/*'], origin)).map(dataOf), ['0', '2', '5'])
    assert.deepEqual((await readAll(log, ['*'], origin)).map(dataOf), ['0', '1', '2', '3', '4', '5'])
    assert.deepEqual((await readAll(log, ['orders/2/*', 'stock/1'], origin)).map(dataOf), ['2', '4'])
    assert.deepEqual(await readAll(log, ['nothing/*'], origin), [])
  },

  async 'pages of a pattern, from one `completeThrough` to the next, give every event once'({ open, environment }) {
    const log = await open()
    const random = createRandom(11)
    const appended: Stored[] = []
    for (let round = 0; round < 60; round += 1) {
      const entries = Array.from({ length: 1 + Math.floor(random() * 4) }, () =>
        entry(`${random() < 0.5 ? 'a' : 'b'}/${Math.floor(random() * 12)}`, `${round}`),
      )
      appended.push(...(await append(log, entries)))
      environment.stepClock(Math.floor(random() * 3))
    }
    const ofA = appended.filter((event) => event.channel.startsWith('a/')).map((event) => event.position)
    for (const limit of [1, 2, 7, 1000]) {
      assert.deepEqual(
        (await readAll(log, ['a/*'], origin, limit)).map((event) => event.position),
        ofA,
      )
      const middle = ofA[10] as Stored['position']
      assert.deepEqual(
        (await readAll(log, ['a/*'], middle, limit)).map((event) => event.position),
        ofA.slice(11),
      )
    }
  },

  async 'a pattern has a gap when one of its channels has, and none for what other channels lost'({ open }) {
    const log = await open({ maxEvents: 2 })
    const after = await log.head()
    const events = await appendAll(log, ['a/1', 'b/1', 'b/1', 'b/1', 'a/2'])
    const whole = await log.read(['a/*'], after, await log.head(), atMost(10))
    assert.deepEqual([whole.gap, whole.events.map(dataOf)], [undefined, ['0', '4']])
    const torn = await log.read(['b/*'], after, await log.head(), atMost(10))
    assert.deepEqual(torn.gap, {
      channels: ['b/*'],
      reason: 'expired',
      wholeAfter: (events[1] as Stored).position,
    })
    assert.deepEqual(torn.events, [])
    assert.deepEqual((await log.read(['*'], after, await log.head(), atMost(10))).gap?.channels, ['*'])
  },

  async 'a gap over channels and patterns ends where all of them are whole'({ open }) {
    const log = await open({ maxEvents: 2 })
    const after = await log.head()
    const events = await appendAll(log, ['c', 'b/1', 'a/1', 'a/2', 'b/1', 'c', 'b/1', 'b/2', 'c', 'b/1', 'c'])
    const at = (index: number) => (events[index] as Stored).position
    const names = ['b/*', 'c', 'a/*']
    const torn = await log.read(names, after, await log.head(), atMost(20))
    assert.deepEqual(torn.gap, { channels: ['b/*', 'c'], reason: 'expired', wholeAfter: at(5) })
    const ofOne = await log.read(names, at(4), await log.head(), atMost(20))
    assert.deepEqual(ofOne.gap, { channels: ['c'], reason: 'expired', wholeAfter: at(5) })
    assert.deepEqual((await readAll(log, names, at(5))).map(dataOf), ['6', '7', '8', '9', '10'])
  },

  async 'a reader of a pattern in the middle of a batch that was too large for a window gets the rest of it'({ open }) {
    const log = await open({ maxEvents: 2 })
    const names = ['a/1', 'a/1', 'c', 'a/1', 'a/1']
    const events = await append(
      log,
      names.map((name, index) => entry(name, `${index}`)),
    )
    const after = (events[1] as Stored).position
    assert.deepEqual((await readAll(log, ['a/*'], after)).map(dataOf), ['3', '4'])
    assert.deepEqual((await readAll(log, ['*'], after)).map(dataOf), ['2', '3', '4'])
  },

  async 'a pattern has a gap for a channel that has lost everything by age'({ open, environment }) {
    const log = await open({ maxAgeMs: 1000 })
    const after = await log.head()
    await append(log, [entry('a/old', '1')])
    await environment.advance(60_000)
    const last = (await append(log, [entry('a/new', '2'), entry('b/new', '3')]))[1] as Stored
    assert.equal((await log.read(['a/*'], after, last.position, atMost(10))).gap?.reason, 'expired')
    const others = await log.read(['b/*'], after, last.position, atMost(10))
    assert.deepEqual([others.gap, others.events.map(dataOf)], [undefined, ['3']])
  },

  async 'a reader of a pattern that stands in the middle of a batch is told what it lost, however long it was away'({
    open,
    environment,
  }) {
    const log = await open({ maxAgeMs: 1000 })
    const [first] = await append(log, [entry('a/1', '1'), entry('a/2', '2')])
    for (let minute = 0; minute < 5; minute += 1) {
      await environment.advance(60_000)
      await log.probe()
    }
    const { position } = first as Stored
    assert.equal((await log.read(['a/*'], position, await log.head(), atMost(10))).gap?.reason, 'expired')
    await append(log, [entry('a/3', '3')])
    assert.equal((await log.read(['a/*'], position, await log.head(), atMost(10))).gap?.reason, 'expired')
  },

  async 'a pattern is told of an invalidation below it'({ open }) {
    const log = await open()
    const [first] = await append(log, [entry('a/1', '1'), entry('b/1', '2')])
    const voided = await log.invalidate('a/1')
    await append(log, [entry('a/2', '3')])
    const torn = await log.read(['a/*'], (first as Stored).position, await log.head(), atMost(10))
    assert.deepEqual(torn.gap, { channels: ['a/*'], reason: 'forced', wholeAfter: voided.position })
    assert.deepEqual((await readAll(log, ['a/*'], voided.position)).map(dataOf), ['3'])
    assert.deepEqual((await readAll(log, ['b/*'], origin)).map(dataOf), ['2'])
  },

  async 'the window of a pattern sums its channels up'({ open }) {
    const log = await open({ maxEvents: 2 })
    const events = await appendAll(log, ['a/1', 'b/1', 'a/2', 'a/2', 'a/2', 'a/3'])
    const at = (index: number) => (events[index] as Stored).position
    const [a, none] = await log.windows(['a/*', 'nothing/*'])
    assert.deepEqual([a?.events, a?.oldest, a?.newest, a?.trimmedThrough], [4, at(0), at(5), at(2)])
    assert.deepEqual([none?.events, none?.oldest, none?.trimmedThrough], [0, undefined, origin])
    const [first] = await append(log, [entry('c/2', '1'), entry('c/1', '2')])
    assert.deepEqual((await log.windows(['c/*']))[0]?.oldest, (first as Stored).position)
  },
}
