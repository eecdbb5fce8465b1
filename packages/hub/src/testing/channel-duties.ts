import assert from 'node:assert/strict'
import { isAfter, origin, type Position } from '@rejoin/protocol'
import { type Log, type NewEvent, retainLimits } from '../log/contract.ts'
import { append, appendAll, atMost, type Duties, dataOf, entry, follow, readAll, type Stored } from './log-bench.ts'
import type { VirtualEnvironment } from './virtual-environment.ts'

/** Duties for channels that end, for retained events, and for live events, which a log does not hold. */
export const channelDuties: Duties = {
  async 'a channel that has ended takes nothing more, keeps what it holds, and says where it ended'({
    open,
    environment,
  }) {
    const log = await open()
    const tail = await follow(log, await log.head())
    await appendAll(log, ['a', 'b'])
    const ended = await log.end('a')
    await assert.rejects(append(log, [entry('a', 'late')]), { code: 'channel-ended' })
    await assert.rejects(append(log, [entry('b', 'with it'), entry('a', 'late')]), { code: 'channel-ended' })
    await append(log, [entry('b', 'after')])
    await environment.settle()
    assert.deepEqual((await readAll(log, ['a', 'b'], origin)).map(dataOf), ['0', '1', 'after'])
    const [a, b] = await log.windows(['a', 'b'])
    assert.deepEqual([a?.ended, a?.events, b?.ended], [ended.position, 1, undefined])
    assert.deepEqual(
      tail.events().map(({ kind, channel }) => [kind, channel]),
      [
        ['event', 'a'],
        ['event', 'b'],
        ['end', 'a'],
        ['event', 'b'],
      ],
    )
  },

  async 'ending a channel again changes nothing'({ open }) {
    const log = await open()
    const [first, second] = await Promise.all([log.end('a'), log.end('a')])
    const head = await log.head()
    assert.deepEqual((await log.end('a')).position, first.position)
    assert.deepEqual([second.position, await log.head()], [first.position, head])
  },

  async 'a channel that is invalidated after its end is deleted, and one that ends after it is not'({ open }) {
    const log = await open()
    await appendAll(log, ['a', 'b', 'c'])
    await log.end('a')
    await log.invalidate('a')
    await log.invalidate('b')
    await log.end('b')
    await log.end('c')
    const [a, b, c] = await log.windows(['a', 'b', 'c'])
    assert.deepEqual([a?.deleted, b?.deleted, c?.deleted], [true, undefined, undefined])
    assert.deepEqual([a?.events, c?.events], [0, 1])
    await assert.rejects(append(log, [entry('a', 'late')]), { code: 'channel-ended' })
  },

  async 'a publish and an end under way together are decided one after the other'({ open }) {
    const log = await open()
    const results = await Promise.allSettled([
      append(log, [entry('a', '1')]),
      log.end('a'),
      append(log, [entry('a', '2')]),
    ])
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'rejected'],
    )
    assert.deepEqual((await readAll(log, ['a'], origin)).map(dataOf), ['1'])
  },

  async 'a tail opened in the past is told of the ends since then'({ open, environment }) {
    const log = await open()
    const start = await log.head()
    await appendAll(log, ['a'])
    await log.end('a')
    await appendAll(log, ['b'])
    await environment.settle()
    const tail = await follow(log, start)
    assert.deepEqual(
      tail.events().map(({ kind, channel }) => [kind, channel]),
      [
        ['event', 'a'],
        ['end', 'a'],
        ['event', 'b'],
      ],
    )
  },

  async 'the events of an ended channel age out, and its end is still known'({ open, environment }) {
    const log = await open({ maxAgeMs: 1000 })
    const after = await log.head()
    await append(log, [entry('a', '1')])
    const ended = await log.end('a')
    await environment.advance(60_000)
    assert.deepEqual((await log.windows(['a']))[0]?.ended, ended.position)
    assert.equal((await log.read(['a'], after, await log.head(), atMost(1))).gap?.reason, 'expired')
    assert.equal((await log.read(['a'], ended.position, await log.head(), atMost(1))).gap, undefined)
    await assert.rejects(append(log, [entry('a', 'late')]), { code: 'channel-ended' })
  },

  async 'events of a time when the clock was ahead age like all others, and are kept as long'({ open, environment }) {
    const log = await open({ maxAgeMs: 60_000 })
    const counts = async () => (await log.windows(['a', 'b'])).map(({ events }) => events)
    environment.stepClock(aYearMs)
    await append(log, [entry('a', 'ahead'), entry('a', 'ahead, too'), entry('b', 'ahead')])
    await log.invalidate('c')
    environment.stepClock(-aYearMs)
    await append(log, [entry('a', 'after')])
    await environment.advance(50_000)
    assert.deepEqual(await counts(), [3, 1])
    for (let minutes = 0; minutes < 15; minutes += 1) await passMinute(log, environment)
    assert.deepEqual(await counts(), [0, 0])
    await append(log, [entry('a', 'new')])
    assert.deepEqual(await counts(), [1, 0])
    // Steps the clock alone, because a month of timers would take long.
    environment.stepClock(31 * 24 * 3_600_000)
    for (let minutes = 0; minutes < 3; minutes += 1) await passMinute(log, environment)
    const known = await log.channels({ prefix: '', after: '', limit: 9 })
    assert.ok(known.every(({ channel }) => channel !== 'c'))
  },

  async 'a channel that ended is forgotten in the end: it takes events again, and a reader from before its end is told'({
    open,
    environment,
  }) {
    const log = await open({ maxAgeMs: 1000 })
    const start = await log.head()
    const [last] = await append(log, [entry('a/1', '1')])
    const ended = await log.end('a/1')
    const endedEmpty = await log.end('a/2')
    await environment.advance(60_000)
    // Steps the clock alone, because a month of timers would take long.
    environment.stepClock(31 * 24 * 3_600_000)
    const again = () => append(log, [entry('a/1', 'again'), entry('a/2', 'again')])
    for (let round = 1; ; round += 1) {
      const isTaken = await again().then(
        () => true,
        (error) => {
          if (error.code !== 'channel-ended' || round === 100) throw error
          return false
        },
      )
      if (isTaken) break
      await environment.advance(10_000)
    }
    await environment.settle()
    const head = await log.head()
    const gapOf = async (name: string, after: Position) => (await log.read([name], after, head, atMost(9))).gap?.reason
    // A reader that has only the last event was never told that the channel ended.
    for (const after of [start, (last as Stored).position]) {
      for (const name of ['a/1', 'a/2', 'a/*']) assert.equal(await gapOf(name, after), 'expired')
    }
    assert.equal(await gapOf('a/2', ended.position), 'expired')
    assert.deepEqual((await readAll(log, ['a/1', 'a/2'], endedEmpty.position)).map(dataOf), ['again', 'again'])
    const begins = (await log.windows(['a/1', 'never', 'a/*'])).map(({ lost }) => lost)
    assert.deepEqual(begins, [undefined, undefined, 'expired'])
  },

  async 'a window says when the beginning of its channel is gone, and why'({ open, environment }) {
    const log = await open({ maxEvents: 2, maxAgeMs: 60_000 })
    const names = ['a', 'b', 'c', '*']
    const lost = async () => (await log.windows(names)).map(({ lost }) => lost)
    await appendAll(log, ['a', 'a', 'b'])
    await environment.settle()
    assert.deepEqual(await lost(), [undefined, undefined, undefined, undefined])
    await appendAll(log, ['a'])
    await environment.settle()
    assert.deepEqual(await lost(), ['expired', undefined, undefined, 'expired'])
    await log.invalidate('c')
    await appendAll(log, ['c'])
    await environment.advance(120_000)
    assert.deepEqual(await lost(), ['expired', 'expired', 'forced', 'forced'])
  },

  async 'the newest event of each key is retained, whatever the window lets go'({ open }) {
    const log = await open({ maxEvents: 1 })
    await append(log, [keyed('a', 'x', '1'), keyed('a', 'y', '2'), keyed('a', 'x', '3'), entry('a', '4')])
    await append(log, [keyed('b', 'x', '5')])
    assert.deepEqual(await retainedOf(log, ['a']), ['a y 2', 'a x 3'])
    assert.deepEqual(await retainedOf(log, ['a', 'b', 'c']), ['a y 2', 'a x 3', 'b x 5'])
    assert.deepEqual(await retainedOf(log, ['*']), ['a y 2', 'a x 3', 'b x 5'])
  },

  async 'a retained event keeps its id, and is forgotten when the publisher says so or the channel is invalidated'({
    open,
  }) {
    const log = await open()
    const [x] = await append(log, [keyed('a', 'x', '1'), keyed('a', 'y', '2'), keyed('b', '', '3')])
    const [kept] = (await log.retained(['a'])) ?? []
    assert.deepEqual([kept?.position, kept?.type, kept?.at], [(x as Stored).position, 'message', (x as Stored).at])
    await append(log, [{ ...keyed('a', 'x', 'gone'), forget: true }])
    assert.deepEqual(await retainedOf(log, ['a']), ['a y 2'])
    assert.deepEqual((await readAll(log, ['a'], origin)).map(dataOf), ['1', '2', 'gone'])
    await log.invalidate('a')
    assert.deepEqual(await retainedOf(log, ['a', 'b']), ['b  3'])
  },

  async 'a channel retains no more keys than its limit, and rejects whole batches over it'({ open }) {
    const log = await open()
    const many = Array.from({ length: retainLimits.keys }, (_, index) => keyed('a', `k${index}`, 'v'))
    await append(log, many.slice(1))
    await assert.rejects(append(log, [keyed('a', 'new', '1'), keyed('a', 'newer', '2')]), { code: 'too-large' })
    await append(log, [keyed('a', 'k1', 'again'), keyed('a', 'new', '1')])
    await append(log, [{ ...keyed('a', 'new', ''), forget: true }, keyed('a', 'newer', '2')])
    assert.equal((await log.retained(['a']))?.length, retainLimits.keys)
    await append(log, [keyed('b/1', 'x', '1'), entry('b/2', '2')])
    assert.deepEqual(await retainedOf(log, ['b/*']), ['b/1 x 1'])
    await append(log, [keyed('a/b', 'x', '1')])
    assert.equal(await log.retained(['*']), undefined)
  },

  async 'a live event goes through the tail in its position, and is held nowhere'({ open, environment }) {
    const log = await open()
    const start = await log.head()
    const tail = await follow(log, start)
    const [first, live, last] = await append(log, [
      entry('a', '1'),
      { ...entry('a', '2'), live: true },
      entry('a', '3'),
    ])
    await environment.settle()
    assert.deepEqual(
      tail.events().map(({ kind, data }) => [kind, data]),
      [
        ['event', '1'],
        ['live', '2'],
        ['event', '3'],
      ],
    )
    const read = await readAll(log, ['a'], origin)
    assert.deepEqual(read.map(dataOf), ['1', '3'])
    assert.deepEqual(read[1]?.previous, (first as Stored).position)
    assert.equal(
      (await log.read(['a'], (live as Stored).position, (last as Stored).position, atMost(9))).events.length,
      1,
    )
    const [alone] = await append(log, [{ ...entry('b', '4'), live: true }])
    assert.deepEqual(await log.head(), (alone as Stored).position)
    assert.ok(isAfter((alone as Stored).position, (last as Stored).position))
    assert.equal((await log.windows(['b']))[0]?.events, 0)
  },
}

/** In a minute of virtual time, a commit of a sweep may still be under way. */
async function passMinute(log: Log, environment: VirtualEnvironment): Promise<void> {
  await environment.advance(60_000)
  await log.probe()
}

const aYearMs = 365 * 24 * 3_600_000

function keyed(channel: string, key: string, data: string): NewEvent {
  return { ...entry(channel, data), key }
}

async function retainedOf(log: Parameters<typeof readAll>[0], names: readonly string[]): Promise<string[]> {
  return ((await log.retained(names)) ?? []).map(({ channel, key, data }) => `${channel} ${key} ${data}`)
}
