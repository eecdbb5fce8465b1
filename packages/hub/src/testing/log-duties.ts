import assert from 'node:assert/strict'
import { comparePositions, isAfter, judgeCursor, origin, type Position, renderId } from '@rejoin/protocol'
import type { LogEvent, TailBatch } from '../log/contract.ts'
import {
  append,
  appendAll,
  assertRising,
  atMost,
  type Duties,
  dataOf,
  entry,
  follow,
  readAll,
  type Stored,
} from './log-bench.ts'
import { createRandom } from './virtual-environment.ts'

/** Duties of every log: order, pages, windows, keys, its tail and its history. */
export const logDuties: Duties = {
  async 'positions rise strictly, and the newest is the head'({ open }) {
    const log = await open()
    const before = await log.head()
    const events = await appendAll(log, ['a', 'b', 'a', 'c'])
    assertRising([before, ...events.map((event) => event.position)])
    assert.deepEqual(await log.head(), events.at(-1)?.position)
  },

  async 'positions rise while the wall clock steps back and forth'({ open, environment }) {
    const log = await open()
    const events: Stored[] = []
    for (const step of [0, -60_000, 3_600_000, -3_600_000, 1, 0]) {
      environment.stepClock(step)
      events.push(...(await appendAll(log, ['a', 'b'])))
    }
    assertRising(events.map((event) => event.position))
  },

  async 'a batch stands together, in the order given'({ open }) {
    const log = await open()
    const [first, , batch] = await Promise.all([
      append(log, [entry('a', '1')]),
      append(log, [entry('a', '2')]),
      append(log, [entry('b', '3'), entry('a', '4'), entry('b', '5')]),
      append(log, [entry('a', '6')]),
    ])
    assert.equal(first.length, 1)
    assert.deepEqual(batch.map(dataOf), ['3', '4', '5'])
    const all = await readAll(log, ['a', 'b'], origin)
    const order = all.map(dataOf).join('')
    assert.ok(order.includes('345'), `other events stand inside the batch: ${order}`)
  },

  async 'an event reads back as it was appended'({ open }) {
    const log = await open()
    const texts = ['', '\n', 'two\nlines', '{"a":1}', '\ufeffBOM', 'nul\0nul', '🂡 é 漢', 'x'.repeat(100_000)]
    const after = await log.head()
    await append(
      log,
      texts.map((data) => ({ channel: 'räume/1', type: 'größe', data })),
    )
    const { events } = await log.read(['räume/1'], after, await log.head(), atMost(100))
    assert.deepEqual(events.map(dataOf), texts)
    assert.deepEqual(new Set(events.map((event) => `${event.channel} ${event.type}`)), new Set(['räume/1 größe']))
  },

  async 'an event says whether it was published as text, in the tail, when it is read and when it is retained'({
    open,
    environment,
  }) {
    const log = await open()
    const tail = await follow(log, await log.head())
    const text = { ...entry('a', '1'), content: 'text' } as const
    const json = entry('a', '1')
    await append(log, [json, text, { ...text, live: true }, { ...json, type: 'other' }, { ...text, type: 'other' }])
    await append(log, [text])
    await append(log, [
      { ...json, key: '' },
      { ...text, key: 'key' },
    ])
    await environment.settle()
    const kept = ['json', 'text', 'json', 'text', 'text', 'json', 'text']
    const contents = (events: readonly LogEvent[]) => events.map(({ content = 'json' }) => content)
    assert.deepEqual(contents(await readAll(log, ['a'], origin)), kept)
    assert.deepEqual(contents(tail.events()), kept.toSpliced(2, 0, 'text'))
    assert.deepEqual(
      (await log.retained(['a']))?.map(({ key, type, data, content }) => [key, type, data, content]),
      [
        ['', 'message', '1', undefined],
        ['key', 'message', '1', 'text'],
      ],
    )
  },

  async 'a read gives what stands after the cursor, over all channels asked for, in position order'({ open }) {
    const log = await open()
    const events = await appendAll(log, ['a', 'b', 'x', 'a', 'c', 'b', 'x', 'a'])
    const after = events[1] as LogEvent
    const page = await log.read(['a', 'b', 'unknown'], after.position, await log.head(), atMost(100))
    assert.deepEqual(
      page.events.map((event) => event.position),
      events.filter((event, index) => index > 1 && 'ab'.includes(event.channel)).map((event) => event.position),
    )
    assert.equal(page.gap, undefined)
  },

  async 'a read stops at `through`, and is complete up to there'({ open }) {
    const log = await open()
    const events = await appendAll(log, ['a', 'a', 'b', 'a'])
    const through = (events[2] as Stored).position
    const page = await log.read(['a'], origin, through, atMost(100))
    assert.deepEqual(page.events.map(dataOf), ['0', '1'])
    assert.deepEqual(page.completeThrough, through)
  },

  async 'a page cut short by its limit is complete only up to its last event'({ open }) {
    const log = await open()
    const events = await appendAll(log, ['a', 'b', 'a', 'b', 'a'])
    const page = await log.read(['a', 'b'], origin, await log.head(), atMost(3))
    assert.deepEqual(page.events.map(dataOf), ['0', '1', '2'])
    assert.deepEqual(page.completeThrough, (events[2] as Stored).position)
  },

  async 'a page has no more bytes than asked for, but always an event'({ open }) {
    const log = await open()
    const after = await log.head()
    await append(log, [entry('a', 'x'.repeat(900)), entry('a', 'x'.repeat(900)), entry('a', 'x'.repeat(900))])
    const two = await log.read(['a'], after, await log.head(), atMost(10, 1000))
    assert.equal(two.events.length, 2)
    assert.deepEqual(two.completeThrough, two.events[1]?.position)
    assert.equal((await log.read(['a'], after, await log.head(), atMost(10, 1))).events.length, 1)
  },

  async 'pages read from one `completeThrough` to the next give every event once'({ open, environment }) {
    const log = await open()
    const random = createRandom(7)
    const channels = ['a', 'b', 'c', 'd']
    const appended: Stored[] = []
    for (let round = 0; round < 60; round += 1) {
      const picked = Array.from(
        { length: 1 + Math.floor(random() * 4) },
        () => channels[Math.floor(random() * 4)] as string,
      )
      appended.push(
        ...(await append(
          log,
          picked.map((channel) => entry(channel, `${round}`)),
        )),
      )
      environment.stepClock(Math.floor(random() * 3))
    }
    for (const limit of [1, 2, 7, 1000]) {
      const read = await readAll(log, ['a', 'c', 'd'], origin, limit)
      assert.deepEqual(
        read.map((event) => event.position),
        appended.filter((event) => event.channel !== 'b').map((event) => event.position),
      )
    }
  },

  async 'each event names its predecessor in its channel'({ open }) {
    const log = await open()
    const events = await appendAll(log, ['a', 'b', 'a', 'a', 'b'])
    const at = (index: number) => (events[index] as Stored).position
    assert.deepEqual(
      (await readAll(log, ['a', 'b'], origin)).map((event) => event.previous),
      [origin, origin, at(0), at(2), at(1)],
    )
  },

  async 'a channel keeps no more events than its window'({ open }) {
    const log = await open({ maxEvents: 3 })
    const events = await appendAll(log, ['a', 'a', 'b', 'a', 'a', 'a'])
    const [a, b] = await log.windows(['a', 'b'])
    assert.equal(a?.events, 3)
    assert.deepEqual(a?.oldest, (events[3] as Stored).position)
    assert.deepEqual(a?.newest, (events[5] as Stored).position)
    assert.deepEqual(a?.trimmedThrough, (events[1] as Stored).position)
    assert.deepEqual([b?.events, b?.trimmedThrough], [1, origin])
  },

  async 'a channel keeps no more bytes than its window'({ open }) {
    const log = await open({ maxBytes: 1000 })
    await append(
      log,
      Array.from({ length: 5 }, () => entry('a', 'x'.repeat(400))),
    )
    const [a] = await log.windows(['a'])
    assert.equal(a?.events, 2)
  },

  async 'a window counts bytes, of which a character takes up to four'({ open }) {
    const log = await open({ maxBytes: 1000 })
    const data = ['ä', '€', '😀'].map((character) => character.repeat(100))
    await append(
      log,
      data.map((text) => entry('a', text)),
    )
    const [whole] = await log.windows(['a'])
    assert.deepEqual([whole?.events, whole?.bytes], [3, 200 + 300 + 400 + 3 * entry('a', '').type.length])
    await append(log, [entry('a', 'x'.repeat(200))])
    const [trimmed] = await log.windows(['a'])
    assert.deepEqual([trimmed?.events, trimmed?.bytes], [3, 300 + 400 + 200 + 3 * entry('a', '').type.length])
    const page = await log.read(['a'], trimmed?.trimmedThrough as Position, await log.head(), atMost(10))
    assert.deepEqual(page.events.map(dataOf), [data[1], data[2], 'x'.repeat(200)])
  },

  async 'an event older than the window is gone, also from a channel nobody publishes to'({ open, environment }) {
    const log = await open({ maxAgeMs: 1000 })
    const after = await log.head()
    const [old] = await append(log, [entry('a', 'old')])
    await environment.advance(900)
    await append(log, [entry('a', 'young')])
    await environment.advance(200)
    assert.ok((await log.read(['a'], after, await log.head(), atMost(10))).gap)
    const page = await log.read(['a'], (old as Stored).position, await log.head(), atMost(10))
    assert.deepEqual([page.gap, page.events.map(dataOf)], [undefined, ['young']])
  },

  async 'a cursor on the last trimmed event has lost nothing; one before it has'({ open }) {
    const log = await open({ maxEvents: 2 })
    const events = await appendAll(log, ['a', 'a', 'a', 'a'])
    const at = (index: number) => (events[index] as Stored).position
    const whole = await log.read(['a'], at(1), await log.head(), atMost(10))
    assert.deepEqual([whole.gap, whole.events.map(dataOf)], [undefined, ['2', '3']])
    const torn = await log.read(['a'], at(0), await log.head(), atMost(10))
    assert.deepEqual([torn.gap, torn.events], [{ channels: ['a'], reason: 'expired', wholeAfter: at(1) }, []])
  },

  async 'a gap names the channels that lost something, and no others'({ open }) {
    const log = await open({ maxEvents: 2 })
    const after = await log.head()
    await appendAll(log, ['a', 'a', 'a', 'b', 'b', 'c', 'c', 'c'])
    const page = await log.read(['a', 'b', 'c', 'unknown'], after, await log.head(), atMost(10))
    assert.deepEqual(page.gap?.channels, ['a', 'c'])
  },

  async 'a gap of some of several channels ends where all of them are whole, and a read from there finds the rest'({
    open,
  }) {
    const log = await open({ maxEvents: 2 })
    const after = await log.head()
    const events = await appendAll(log, ['late', 'a', 'whole', 'a', 'late', 'a', 'late', 'late', 'whole', 'a'])
    const at = (index: number) => (events[index] as Stored).position
    const read = async (names: readonly string[], from: Position) => log.read(names, from, await log.head(), atMost(10))
    const names = ['whole', 'late', 'a', 'unknown']
    const torn = await read(names, after)
    assert.deepEqual(
      [torn.gap, torn.events, torn.completeThrough],
      [{ channels: ['late', 'a'], reason: 'expired', wholeAfter: at(4) }, [], after],
    )
    const whole = await read(names, at(4))
    assert.deepEqual([whole.gap, whole.events.map(dataOf)], [undefined, ['5', '6', '7', '8', '9']])
    // A loss of another channel before the cursor does not concern this reader.
    const ofOne = await read(names, at(3))
    assert.deepEqual(ofOne.gap, { channels: ['late'], reason: 'expired', wholeAfter: at(4) })
    // Nor does the invalidation of another channel.
    const voided = await log.invalidate('whole')
    const [last] = (await appendAll(log, ['a', 'a'])).slice(-1)
    const since = await read(names, voided.position)
    assert.deepEqual([since.gap, since.events.map(({ position }) => position).at(-1)], [undefined, last?.position])
    const before = await read(names, at(8))
    assert.deepEqual(before.gap, { channels: ['whole', 'a'], reason: 'forced', wholeAfter: voided.position })
  },

  async 'an invalidated channel holds nothing, has a gap for every cursor before that, and goes on'({
    open,
    environment,
  }) {
    const log = await open()
    const tail = await follow(log, await log.head())
    const before = await append(log, [entry('a', '1'), entry('b', '2')])
    const voided = await log.invalidate('a')
    const after = await append(log, [entry('a', '3')])
    await environment.settle()
    assertRising([...before, voided, ...after].map((event) => event.position))
    const cursor = (before[1] as Stored).position
    const page = await log.read(['a', 'b'], cursor, await log.head(), atMost(10))
    assert.deepEqual(page.gap, { channels: ['a'], reason: 'forced', wholeAfter: voided.position })
    assert.deepEqual((await log.read(['a'], voided.position, await log.head(), atMost(10))).events.map(dataOf), ['3'])
    assert.equal((await log.read(['b'], origin, await log.head(), atMost(10))).gap, undefined)
    assert.deepEqual(
      tail.events().map((event) => [event.kind, event.channel]),
      [
        ['event', 'a'],
        ['event', 'b'],
        ['invalidation', 'a'],
        ['event', 'a'],
      ],
    )
  },

  async 'a publish under a key it knows appends nothing and gives the same positions'({ open }) {
    const log = await open()
    const once = { scope: 'me', key: 'k', hash: 'h' }
    const both = await Promise.all([append(log, [entry('a', '1')], once), append(log, [entry('a', '1')], once)])
    const third = await append(log, [entry('a', '1')], once)
    const positions = [...both, third].map((events) => events.map((event) => event.position))
    assert.deepEqual(positions, [positions[0], positions[0], positions[0]])
    assert.equal((await readAll(log, ['a'], origin)).length, 1)
    await append(log, [entry('a', '1')], { ...once, scope: 'you' })
    assert.equal((await readAll(log, ['a'], origin)).length, 2)
  },

  async 'a key used again for something else is rejected, and nothing is appended'({ open }) {
    const log = await open()
    await append(log, [entry('a', '1')], { scope: 'me', key: 'k', hash: 'h' })
    await assert.rejects(append(log, [entry('a', '2')], { scope: 'me', key: 'k', hash: 'other' }), {
      code: 'key-reused',
    })
    assert.equal((await readAll(log, ['a'], origin)).length, 1)
  },

  async 'the tail gives every event once, in order, each batch going on where the last one ended'({
    open,
    environment,
  }) {
    const log = await open()
    const start = await log.head()
    const tail = await follow(log, start)
    const appended = (await Promise.all(Array.from({ length: 50 }, (_, n) => append(log, [entry('a', `${n}`)])))).flat()
    await environment.settle()
    assert.deepEqual(
      tail.events().map((event) => event.position),
      appended.map((event) => event.position).sort(comparePositions),
    )
    tail.assertLinked(start)
  },

  async 'a tail opened in the past starts with what came since'({ open, environment }) {
    const log = await open()
    const events = await appendAll(log, ['a', 'b', 'a'])
    await environment.settle()
    const start = (events[0] as Stored).position
    const tail = await follow(log, start)
    await appendAll(log, ['c'])
    await environment.settle()
    assert.deepEqual(
      tail.events().map((event) => event.channel),
      ['b', 'a', 'c'],
    )
    tail.assertLinked(start)
  },

  async 'a tail that can no longer start where it was asked to says from where it goes on'({ open, environment }) {
    const log = await open({ maxEvents: 1 })
    const start = await log.head()
    const events = await appendAll(log, ['a', 'a', 'a'])
    await environment.settle()
    const tail = await follow(log, start)
    await environment.settle()
    const first = tail.batches[0] as TailBatch
    assert.ok(isAfter(first.after, start), 'the first batch claims to follow a position whose events are gone')
    assert.deepEqual(tail.events().map(dataOf), [(events[2] as Stored).data])
  },

  async 'the tail is not called from inside an append'({ open }) {
    const log = await open()
    let inside = false
    let calledInside = false
    await log.tail(await log.head(), () => {
      calledInside ||= inside
    })
    inside = true
    const appended = append(log, [entry('a', '1')])
    inside = false
    await appended
    assert.equal(calledInside, false)
  },

  async 'a closed tail is silent'({ open, environment }) {
    const log = await open()
    const tail = await follow(log, await log.head())
    tail.close()
    await appendAll(log, ['a'])
    await environment.settle()
    assert.deepEqual(tail.batches, [])
  },

  async 'what is in the tail can be read'({ open, environment }) {
    const log = await open()
    const start = await log.head()
    const reads: Promise<unknown>[] = []
    await log.tail(start, ({ events }) => {
      for (const event of events) {
        reads.push(
          log.read([event.channel], start, event.position, atMost(1000)).then((page) => {
            assert.deepEqual(page.events.at(-1)?.position, event.position)
          }),
        )
      }
    })
    await appendAll(log, ['a', 'b', 'a', 'c'])
    await environment.settle()
    assert.equal((await Promise.all(reads)).length, 4)
  },

  async 'the id of every position it gave out is a cursor it accepts'({ open }) {
    const log = await open()
    const { formats, history } = log
    const positions = [await log.head(), ...(await appendAll(log, ['a', 'b'])).map((event) => event.position)]
    const head = await log.head()
    for (const position of positions) {
      const id = renderId(position, { formats, history })
      assert.deepEqual(judgeCursor(id, { formats, history, head }), { ok: true, position })
    }
  },

  async 'events, ids and order survive a close and an open'({ open }) {
    const before = await open()
    const events = await appendAll(before, ['a', 'b', 'a'])
    const ids = events.map((event) => renderId(event.position, before))
    await before.close()
    const log = await open()
    assert.deepEqual(
      (await readAll(log, ['a', 'b'], origin)).map(({ channel, type, data, position, at }) => ({
        channel,
        type,
        data,
        position,
        at,
      })),
      events,
    )
    assert.deepEqual(
      events.map((event) => renderId(event.position, log)),
      ids,
    )
    const later = await appendAll(log, ['a'])
    assertRising([...events, ...later].map((event) => event.position))
  },

  async 'an id from before everything was lost is told from one of today'({ open, environment }) {
    const before = await open()
    const [event] = await appendAll(before, ['a'])
    const id = renderId((event as Stored).position, before)
    await before.close()
    await environment.advance(1)
    const log = await open()
    await appendAll(log, ['a', 'a', 'a'])
    const verdict = judgeCursor(id, { formats: log.formats, history: log.history, head: await log.head() })
    assert.deepEqual(verdict, { ok: false, reason: 'epoch' })
  },

  async 'its channels are listed by name, page by page, those that hold nothing included'({ open }) {
    const log = await open()
    await appendAll(log, ['b', 'a/2', 'a/1', 'a', 'c'])
    await log.end('a/3')
    await log.invalidate('c')
    const list = async (page: { prefix: string; after: string; limit: number }) =>
      (await log.channels(page)).map(({ channel, events }) => `${channel} ${events}`)
    assert.deepEqual(await list({ prefix: '', after: '', limit: 9 }), ['a 1', 'a/1 1', 'a/2 1', 'a/3 0', 'b 1', 'c 0'])
    assert.deepEqual(await list({ prefix: 'a/', after: '', limit: 2 }), ['a/1 1', 'a/2 1'])
    assert.deepEqual(await list({ prefix: 'a/', after: 'a/2', limit: 2 }), ['a/3 0'])
    assert.deepEqual(await list({ prefix: 'x', after: '', limit: 2 }), [])
  },

  async 'a probe appends nothing, and fails on a closed log'({ open }) {
    const log = await open()
    const head = await log.head()
    await log.probe()
    assert.deepEqual(await log.head(), head)
    await log.close()
    await assert.rejects(log.probe(), { code: 'closed' })
  },

  async 'an empty append is no event'({ open }) {
    const log = await open()
    const head = await log.head()
    assert.deepEqual(await append(log, []), [])
    assert.deepEqual(await log.head(), head)
  },

  async 'a token it has seen is answered with the positions of then, and appends nothing'({ open }) {
    const log = await open()
    const first = await log.append([entry('a', '1')], { token: 'same' })
    const again = await log.append([entry('a', '1')], { token: 'same' })
    assert.deepEqual(again, { stamps: first.stamps, repeated: true })
    assert.equal((await readAll(log, ['a'], origin)).length, 1)
  },

  async 'a closed log rejects with the code `closed`'({ open }) {
    const log = await open()
    await log.close()
    await assert.rejects(append(log, [entry('a', '1')]), { code: 'closed' })
    await assert.rejects(log.read(['a'], origin, origin, atMost(1)), { code: 'closed' })
    await assert.rejects(log.head(), { code: 'closed' })
  },
}
