import { memoryLog } from '@rejoin/hub/memory'
import { describe, expect, test } from 'vitest'
import { emptiedLog } from '../../support/emptied-log.ts'
import { publish } from '../../support/publishing.ts'
import { openHub, parse } from '../../support/recorder.ts'

describe('a reader that comes back', () => {
  test('with the fifth id of ten gets exactly six to ten', async () => {
    const { hub, environment, connect } = await openHub()
    const ids = await publish(hub, 'a', 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    const reader = connect('a', { cursor: ids[4] as string })
    await environment.settle()
    expect(reader.data).toEqual(['6', '7', '8', '9', '10'])
    expect(JSON.parse(reader.events[0]?.data ?? '')).toMatchObject({ resumed: true, requested: ids[4] })
  })

  test('and leaves in the middle of its replay is told apart from one that has caught up', async () => {
    const { hub, environment, connect } = await openHub()
    const closes: unknown[] = []
    hub.on('close', ({ unfinished }) => closes.push(unfinished))
    const ids = await publish(hub, 'a', ...Array.from({ length: 5000 }, (_, n) => n))
    const cursor = ids[0] as string
    const slow = connect('a', { cursor, fullAfter: 1000 })
    await environment.settle()
    slow.session.disconnected()
    const fast = connect('a', { cursor: ids.at(-1) as string })
    await environment.settle()
    fast.session.disconnected()
    const replayed = slow.data.length
    expect(replayed).toBeGreaterThan(0)
    expect(replayed).toBeLessThan(4999)
    expect(closes).toEqual([{ requested: cursor, found: true, replayed }, undefined])
  })

  test('and leaves before the log has answered is reported as neither found nor lost', async () => {
    const { hub, connect } = await openHub({ hotBytes: 1 })
    const closes: unknown[] = []
    hub.on('close', ({ unfinished }) => closes.push(unfinished))
    const [cursor = ''] = await publish(hub, 'a', 1, 2)
    connect('a', { cursor }).session.disconnected()
    expect(closes).toEqual([{ requested: cursor, found: null, replayed: 0 }])
  })

  test('having seen nothing but hello misses nothing (§4.4)', async () => {
    const { hub, environment, connect } = await openHub()
    const first = connect('a')
    await environment.settle()
    first.session.disconnected()
    await publish(hub, 'a', 1, 2)
    const second = connect('a', { cursor: first.lastId })
    await environment.settle()
    expect(second.data).toEqual(['1', '2'])
  })

  test('with its newest id gets nothing old, no alarm, and the next event', async () => {
    const { hub, environment, connect } = await openHub()
    const [id] = await publish(hub, 'a', 1)
    const reader = connect('a', { cursor: id as string })
    await publish(hub, 'a', 2)
    await environment.settle()
    expect(reader.events.map((event) => event.type)).toEqual(['hello', 'message'])
    expect(reader.data).toEqual(['2'])
  })

  test('gets an event that is published during its replay once, after the replay', async () => {
    const { hub, environment, connect } = await openHub({ hotBytes: 1 })
    const ids = await publish(hub, 'a', 1, 2, 3)
    const reader = connect('a', { cursor: ids[0] as string })
    await publish(hub, 'a', 4)
    await environment.settle()
    await publish(hub, 'a', 5)
    await environment.settle()
    expect(reader.data).toEqual(['2', '3', '4', '5'])
  })

  test('in the middle of a turn gets each event of that turn once', async () => {
    const { hub, environment, connect } = await openHub()
    const live = connect('a')
    await environment.settle()
    const [id] = await publish(hub, 'a', 1, 2)
    const joined = connect('a', { cursor: id as string })
    await publish(hub, 'a', 3)
    await environment.settle()
    expect(live.data).toEqual(['1', '2', '3'])
    expect(joined.data).toEqual(['2', '3'])
  })

  test('resumes several channels from one id', async () => {
    const { hub, environment, connect } = await openHub()
    const ids = [
      ...(await publish(hub, 'a', 1)),
      ...(await publish(hub, 'b', 2)),
      ...(await publish(hub, 'c', 3)),
      ...(await publish(hub, 'a', 4)),
      ...(await publish(hub, 'b', 5)),
    ]
    const reader = connect(['b', 'a'], { cursor: ids[1] as string })
    await environment.settle()
    expect(reader.data).toEqual(['4', '5'])
  })

  test('reads on from where the log stopped when its page was filtered, and is not sent the same range again', async () => {
    const { hub, environment, connect } = await openHub({ hotBytes: 1 })
    const [start] = await publish(hub, 'a', 0)
    for (let n = 1; n <= 600; n += 1) await hub.publish('a', { type: n % 300 === 0 ? 'rare' : 'common', data: n })
    const reader = connect('a', { cursor: start as string, types: ['rare'] })
    await environment.settle()
    await hub.publish('a', { type: 'rare', data: 601 })
    await environment.settle()
    expect(reader.data).toEqual(['300', '600', '601'])
  })

  test('through long pages with a slow sink gets everything, in order', async () => {
    const { hub, environment, connect } = await openHub({ hotBytes: 1 })
    const [start] = await publish(hub, 'a', 0)
    const sent = Array.from({ length: 700 }, (_, n) => JSON.stringify(`${n}`.padEnd(1000, '.')))
    for (const text of sent) await hub.publish('a', { text })
    const reader = connect('a', { cursor: start as string, fullAfter: 50_000 })
    for (let turns = 0; turns < 30; turns += 1) {
      await environment.settle()
      reader.drain()
    }
    await environment.settle()
    expect(reader.data).toEqual(sent)
  })
})

describe('a cut', () => {
  test('after any byte of a turn with two channels leaves the rest to come once and in order (§4.3)', async () => {
    const { hub, environment, connect } = await openHub()
    const reader = connect(['a', 'b'])
    await environment.settle()
    await Promise.all([hub.publish('a', { data: 1 }), hub.publish('b', { data: 2 }), hub.publish('a', { data: 3 })])
    await environment.settle()
    expect(reader.writes).toHaveLength(2)
    const [hello, turn] = reader.writes as [string, string]
    const greeted = parse(hello).lastId
    for (let cut = 0; cut <= turn.length; cut += 1) {
      const before = parse(turn.slice(0, cut), greeted)
      const back = connect(['a', 'b'], { cursor: before.lastId })
      await environment.settle()
      expect([...before.events.map((event) => event.data), ...back.data], `cut at ${cut}`).toEqual(['1', '2', '3'])
      back.session.disconnected()
    }
  })

  test('while the snapshot is built does not hide the gap: the reader is told again (§4.4)', async () => {
    let finish = (_state: unknown) => {}
    const snapshot = () =>
      new Promise((resolve) => {
        finish = resolve
      })
    const { hub, environment, connect } = await openHub({
      log: memoryLog({ window: { maxEvents: 2 } }),
      snapshot,
      hotBytes: 1,
    })
    const ids = await publish(hub, 'a', 1, 2, 3, 4, 5)
    const first = connect('a', { cursor: ids[0] as string })
    await environment.settle()
    expect(first.events.map((event) => event.type)).toEqual(['hello'])
    const { lastId } = parse(first.text, ids[0])
    expect(lastId).toBe(ids[0])
    first.session.disconnected()

    const second = connect('a', { cursor: lastId })
    await environment.settle()
    finish({ total: 5 })
    await environment.settle()
    expect(second.events.map((event) => event.type)).toEqual(['hello', 'sync-required'])
    expect(JSON.parse(second.events[1]?.data ?? '')).toMatchObject({ reason: 'expired', snapshot: { total: 5 } })
  })
})

describe('a gap is announced', () => {
  const small = () => ({ log: memoryLog({ window: { maxEvents: 3 } }), hotBytes: 1 })

  test('first, with its reason, what is lost and what is left; then everything that follows (§4.6)', async () => {
    const { hub, environment, connect } = await openHub(small())
    const ids = await publish(hub, 'a', 1, 2, 3, 4, 5, 6)
    const reader = connect(['a', 'b'], { cursor: ids[0] as string })
    await environment.settle()
    await publish(hub, 'a', 7)
    await environment.settle()
    const [hello, sync, next] = reader.events
    expect(JSON.parse(hello?.data ?? '')).toMatchObject({ resumed: false, requested: ids[0] })
    expect(sync).toMatchObject({ type: 'sync-required', id: ids[5] })
    expect(JSON.parse(sync?.data ?? '')).toEqual({
      ...{ reason: 'expired', channels: ['a'], requested: ids[0], oldest: ids[3], latest: ids[5] },
    })
    expect(next?.data).toBe('7')
  })

  test('a reader that has the newest event that was trimmed is not alarmed; one event less and it is', async () => {
    const { hub, environment, connect } = await openHub(small())
    const ids = await publish(hub, 'a', 1, 2, 3, 4, 5, 6)
    const edge = connect('a', { cursor: ids[2] as string })
    const beyond = connect('a', { cursor: ids[1] as string })
    await environment.settle()
    expect(edge.data).toEqual(['4', '5', '6'])
    expect(beyond.events.map((event) => event.type)).toEqual(['hello', 'sync-required'])
  })

  test('a channel that holds nothing any more announces its gap too', async () => {
    const { hub, environment, connect } = await openHub({ log: memoryLog({ window: { maxAgeMs: 1000 } }), hotBytes: 1 })
    const ids = await publish(hub, 'a', 1, 2)
    await environment.advance(5000)
    const reader = connect('a', { cursor: ids[0] as string })
    await environment.settle()
    expect(JSON.parse(reader.events[1]?.data ?? '')).toMatchObject({
      reason: 'expired',
      oldest: null,
      requested: ids[0],
    })
  })

  test('the id of sync-required is a cursor to resume from, without a second gap', async () => {
    const { hub, environment, connect } = await openHub(small())
    const ids = await publish(hub, 'a', 1, 2, 3, 4, 5, 6)
    const told = connect('a', { cursor: ids[0] as string })
    await environment.settle()
    await publish(hub, 'a', 7)
    const back = connect('a', { cursor: parse(told.text).events[1]?.id as string })
    await environment.settle()
    expect(back.events.map((event) => event.type)).toEqual(['hello', 'message'])
    expect(back.data).toEqual(['7'])
  })

  test('where there is no snapshot, readers are told where to load the state (§4.6)', async () => {
    const snapshotUrl = ([channel]: readonly string[]) => (channel === 'a' ? 'https://app.example/a' : undefined)
    const hooks = [undefined, () => undefined, () => Promise.reject(new Error('down'))]
    for (const snapshot of hooks) {
      const { environment, connect } = await openHub({ ...small(), snapshotUrl, ...(snapshot && { snapshot }) })
      const readers = [connect('a', { cursor: 'of another log' }), connect('b', { cursor: 'of another log' })]
      await environment.settle()
      const syncs = readers.map((reader) => JSON.parse(reader.events[1]?.data ?? ''))
      expect(syncs.map((sync) => sync.snapshotUrl)).toEqual(['https://app.example/a', undefined])
    }
    const { environment, connect } = await openHub({ ...small(), snapshotUrl, snapshot: () => 7 })
    const reader = connect('a', { cursor: 'of another log' })
    await environment.settle()
    const sync = JSON.parse(reader.events[1]?.data ?? '')
    expect(sync).toMatchObject({ snapshot: 7 })
    expect(sync).not.toHaveProperty('snapshotUrl')
  })

  test('an event published while the snapshot is read follows it', async () => {
    const { hub, environment, connect } = await openHub({
      ...small(),
      snapshot: async () => {
        const seen = 6
        await hub.publish('a', { data: 7 })
        return { seen }
      },
    })
    const ids = await publish(hub, 'a', 1, 2, 3, 4, 5, 6)
    const reader = connect('a', { cursor: ids[0] as string })
    await environment.settle()
    expect(JSON.parse(reader.events[1]?.data ?? '')).toMatchObject({ snapshot: { seen: 6 }, latest: ids[5] })
    expect(reader.data).toEqual(['7'])
  })

  test.each([
    [
      'throws',
      () => {
        throw new Error('no database')
      },
    ],
    ['rejects', () => Promise.reject(new Error('no database'))],
    ['never answers', () => new Promise(() => {})],
    ['answers what is no JSON', () => ({ big: 1n })],
  ])('a snapshot hook that %s does not hold back the announcement', async (_case, snapshot) => {
    const { hub, environment, connect } = await openHub({ ...small(), snapshot })
    const ids = await publish(hub, 'a', 1, 2, 3, 4, 5, 6)
    const reader = connect('a', { cursor: ids[0] as string })
    await environment.advance(5001)
    expect(reader.events[1]?.type).toBe('sync-required')
    expect(JSON.parse(reader.events[1]?.data ?? '')).not.toHaveProperty('snapshot')
  })

  test('a slow reader that falls out of its window is told of one gap, and goes on', async () => {
    const { hub, environment, connect } = await openHub(small())
    const reader = connect('a', { fullAfter: 400 })
    await environment.settle()
    for (let n = 1; n <= 20; n += 1) {
      await publish(hub, 'a', n)
      await environment.settle()
    }
    const before = reader.data.length
    reader.drain()
    await environment.settle()
    await publish(hub, 'a', 21)
    await environment.settle()
    const types = reader.events.map((event) => event.type)
    expect(types.filter((type) => type === 'sync-required')).toHaveLength(1)
    expect(reader.data).toEqual([...Array.from({ length: before }, (_, index) => `${index + 1}`), '21'])
    expect(before).toBeLessThan(20)
  })

  test.each([
    ['nonsense', 'unknown-id'],
    ['x'.repeat(5000), 'unknown-id'],
    ['a, b', 'unknown-id'],
    ['\u0000', 'unknown-id'],
    ['v9_01JCQ8ZK5N7W2V0G3T9B4D6H1M', 'version'],
    ['017f22e2-79b0-7cc3-98c4-dc0c0c07398f', 'version'],
    ['01JCQ8ZK5N7W2V0G3T9B4D6H1M', 'epoch'],
  ])('a cursor like %s is answered with sync-required: %s (§3.2)', async (cursor, reason) => {
    const { hub, environment, connect } = await openHub()
    await publish(hub, 'a', 1)
    const reader = connect('a', { cursor })
    await environment.settle()
    const [hello, sync] = reader.events
    expect(JSON.parse(hello?.data ?? '')).toMatchObject({ resumed: false, requested: cursor.slice(0, 128) })
    expect(JSON.parse(sync?.data ?? '')).toMatchObject({ reason })
    await publish(hub, 'a', 2)
    await environment.settle()
    expect(reader.data).toEqual(['2'])
  })

  test('an id of a hub that was restarted without its events is an epoch gap, also with no event since', async () => {
    const before = await openHub()
    const [id] = await publish(before.hub, 'a', 1)
    const after = await openHub({}, 2)
    const reader = after.connect('a', { cursor: id as string })
    await after.environment.settle()
    expect(JSON.parse(reader.events[1]?.data ?? '')).toMatchObject({ reason: 'epoch', requested: id })
  })

  test('a reader that comes before the hub has heard that the log was emptied is told of one gap, on the new branch', async () => {
    const log = emptiedLog()
    const { hub, environment, connect } = await openHub({ log: log.source })
    const [id] = await publish(hub, 'a', 1)
    const emptied = await log.empty()
    const reader = connect('a', { cursor: id as string })
    await environment.settle()
    expect(reader.events).toEqual([])
    emptied.tell()
    await environment.settle()
    expect(reader.events.map(({ type }) => type)).toEqual(['hello', 'sync-required'])
    const back = connect('a', { cursor: reader.lastId })
    await environment.settle()
    expect(JSON.parse(back.events[0]?.data ?? '')).toMatchObject({ resumed: true })
  })

  test('a reader is told of one gap also when the log is emptied twice before the hub hears of it', async () => {
    const log = emptiedLog()
    const { hub, environment, connect } = await openHub({ log: log.source })
    const [id] = await publish(hub, 'a', 1)
    const first = await log.empty()
    const reader = connect('a', { cursor: id as string })
    await environment.settle()
    const second = await log.empty()
    first.tell()
    await environment.settle()
    second.tell()
    await environment.settle()
    expect(reader.events.map(({ type }) => type)).toEqual(['hello', 'sync-required'])
  })

  test('a reader keeps its cursor when its stream closes because the hub hears too late that the log was emptied', async () => {
    const log = emptiedLog()
    const { hub, environment, connect } = await openHub({ log: log.source })
    const [id] = await publish(hub, 'a', 1)
    await log.empty()
    const reader = connect('a', { cursor: id as string })
    await environment.advance(11_000)
    expect(reader.events.map(({ type, data }) => [type, JSON.parse(data).reason])).toEqual([
      ['close', 'log-unavailable'],
    ])
    expect(reader.lastId).toBe('')
  })
})
