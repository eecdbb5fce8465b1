import { memoryLog } from '@rejoin/hub/memory'
import { createVirtualEnvironment } from '@rejoin/hub/testing'
import { describe, expect, test, vi } from 'vitest'
import { laggingLog } from '../../support/lagging-log.ts'
import { publish } from '../../support/publishing.ts'
import { openHub, type Recorder } from '../../support/recorder.ts'

describe('a reader without a cursor (§3.4)', () => {
  test('gets nothing old', async () => {
    const { hub, environment, connect } = await openHub()
    await publish(hub, 'a', 1, 2)
    const reader = connect('a')
    await environment.settle()
    expect(reader.data).toEqual([])
  })

  test.each([
    [0, []],
    [2, ['4', '5']],
    [99, ['1', '2', '3', '4', '5']],
  ])('that asks for the last %i events gets them first, then live ones', async (events, expected) => {
    const { hub, environment, connect } = await openHub()
    await publish(hub, 'a', 1, 2, 3, 4, 5)
    const reader = connect('a', { start: { from: 'last', events } })
    await environment.settle()
    await publish(hub, 'a', 6)
    await environment.settle()
    expect(reader.data).toEqual([...expected, '6'])
  })

  test('that asks for the last events of a type is given that many of that type', async () => {
    const { hub, environment, connect } = await openHub()
    for (let n = 1; n <= 9; n += 1) await hub.publish('a', { type: n % 3 === 0 ? 'third' : 'other', data: n })
    const reader = connect('a', { start: { from: 'last', events: 2 }, types: ['third'] })
    await environment.settle()
    expect(reader.data).toEqual(['6', '9'])
  })

  test('that asks for the last events and leaves at once costs no read of the log when its turn comes', async () => {
    const virtual = createVirtualEnvironment({ seed: 1 })
    let time = 0
    // Each look at the clock takes a millisecond, so that a turn has time for a few slices.
    const environment = { ...virtual, now: () => virtual.now() + time++ }
    let reads: { mock: { calls: unknown[] } } | undefined
    const source = memoryLog()
    const log = {
      name: 'counted',
      async open(...args: Parameters<typeof source.open>) {
        const opened = await source.open(...args)
        reads = vi.spyOn(opened as Required<typeof opened>, 'readBack')
        return opened
      },
    }
    const { hub, connect } = await openHub({ log, environment })
    await publish(hub, 'a', 1, 2, 3)
    await virtual.settle()
    const readers = Array.from({ length: 100 }, () => connect('a', { start: { from: 'last', events: 2 } }))
    for (const reader of readers) reader.session.disconnected()
    await virtual.settle()
    expect(reads?.mock.calls.length).toBeLessThan(20)
  })

  test('that asks for the earliest gets all that is held', async () => {
    const { hub, environment, connect } = await openHub({ log: memoryLog({ window: { maxEvents: 3 } }), hotBytes: 1 })
    await publish(hub, 'a', 1, 2, 3, 4, 5)
    const reader = connect('a', { start: { from: 'earliest' } })
    await environment.settle()
    expect(reader.events[0]?.type).toBe('hello')
    expect(JSON.parse(reader.events[0]?.data ?? '')).toMatchObject({ resumed: false, requested: 'earliest' })
    expect(reader.data).toEqual(['3', '4', '5'])
  })

  test('is greeted with the position before the first event, so that a cut right after hello repeats nothing and loses nothing', async () => {
    const { hub, environment, connect } = await openHub()
    await publish(hub, 'a', 1, 2, 3, 4)
    const first = connect('a', { start: { from: 'last', events: 2 } })
    await environment.settle()
    const second = connect('a', { cursor: first.events[0]?.id as string })
    await environment.settle()
    expect(second.data).toEqual(['3', '4'])
  })
})

describe('a reader that would have to be replayed too much', () => {
  test('is told replay-limit and goes on at the head', async () => {
    const { hub, environment, connect } = await openHub({ maxReplayEvents: 3 })
    const ids = await publish(hub, 'a', 1, 2, 3, 4, 5)
    const within = connect('a', { cursor: ids[1] as string })
    const beyond = connect('a', { cursor: ids[0] as string })
    await environment.settle()
    await publish(hub, 'a', 6)
    await environment.settle()
    expect(within.data).toEqual(['3', '4', '5', '6'])
    expect(JSON.parse(beyond.events[1]?.data ?? '')).toMatchObject({ reason: 'replay-limit', latest: ids[4] })
    expect(beyond.data).toEqual(['6'])
  })

  test('is judged by the age of the first event it missed, not by how long it was away', async () => {
    const { hub, environment, connect } = await openHub({ maxReplayAgeMs: 60_000 })
    const [idle] = await publish(hub, 'a', 1)
    await environment.advance(120_000)
    const quiet = connect('a', { cursor: idle as string })
    await environment.settle()
    expect(quiet.events.map((event) => event.type)).toEqual(['hello'])
    await publish(hub, 'a', 2)
    await environment.advance(61_000)
    const late = connect('a', { cursor: idle as string })
    await environment.settle()
    expect(JSON.parse(late.events[1]?.data ?? '')).toMatchObject({ reason: 'replay-limit' })
  })
})

describe('a reader that added a channel (§3.3)', () => {
  test('is told of the added channel at its own cursor, and gets everything after it from both', async () => {
    const { hub, environment, connect } = await openHub()
    const [cursor] = await publish(hub, 'a', 1)
    await publish(hub, 'b', 2)
    await publish(hub, 'a', 3)
    const reader = connect(['a', 'b'], { start: { from: 'cursor', cursor: cursor as string, added: ['b'] } })
    await environment.settle()
    expect(reader.events.map((event) => event.type)).toEqual(['hello', 'sync-required', 'message', 'message'])
    expect(reader.events[1]?.id).toBe(cursor)
    expect(JSON.parse(reader.events[1]?.data ?? '')).toMatchObject({ reason: 'added', channels: ['b'] })
    expect(reader.data).toEqual(['2', '3'])
  })
})

describe('an invalidated channel', () => {
  test('tells live, absent and slow readers `forced`, and readers of other channels nothing', async () => {
    const { hub, environment, connect } = await openHub()
    const live = connect(['a', 'b'])
    const other = connect('b')
    const ids = await publish(hub, 'a', 1, 2)
    await environment.settle()
    await hub.invalidate('a')
    const absent = connect('a', { cursor: ids[0] as string })
    await environment.settle()
    await publish(hub, 'a', 3)
    await publish(hub, 'b', 4)
    await environment.settle()
    expect(live.data).toEqual(['1', '2', '3', '4'])
    expect(
      live.events.filter((event) => event.type === 'sync-required').map((event) => JSON.parse(event.data)),
    ).toMatchObject([{ reason: 'forced', channels: ['a'], requested: ids[1] }])
    expect(JSON.parse(absent.events[1]?.data ?? '')).toMatchObject({ reason: 'forced', requested: ids[0] })
    expect(absent.data).toEqual(['3'])
    expect(other.events.map((event) => event.type)).toEqual(['hello', 'message'])
  })

  test('announces no gap to a reader that came after it', async () => {
    const { hub, environment, connect } = await openHub()
    await publish(hub, 'a', 1)
    await hub.invalidate('a')
    const first = connect('a')
    await environment.settle()
    await publish(hub, 'a', 2)
    const back = connect('a', { cursor: first.lastId })
    await environment.settle()
    expect(back.events.map((event) => event.type)).toEqual(['hello', 'message'])
  })
})

describe('a reader of a quiet channel (§4.9)', () => {
  test("is moved on after a minute of others' events, and resumes from there", async () => {
    const { hub, environment, connect } = await openHub()
    const reader = connect('quiet')
    await environment.settle()
    const greeted = reader.lastId
    await publish(hub, 'busy', 1)
    await environment.advance(80_000)
    expect(reader.events.map((event) => event.type)).toEqual(['hello', 'checkpoint'])
    expect(reader.lastId > greeted).toBe(true)
    await publish(hub, 'quiet', 2)
    const back = connect('quiet', { cursor: reader.events[1]?.id as string })
    await environment.settle()
    expect(back.data).toEqual(['2'])
  })

  test('is not written to when nothing has happened anywhere', async () => {
    const { environment, connect } = await openHub()
    const reader = connect('quiet')
    await environment.advance(300_000)
    expect(reader.events.map((event) => event.type)).toEqual(['hello'])
  })

  test('with a filter that lets nothing through is moved on while it replays', async () => {
    const { hub, environment, connect } = await openHub({
      log: memoryLog({ window: { maxEvents: 5000 } }),
      hotBytes: 1,
    })
    const [start] = await publish(hub, 'a', 0)
    for (let n = 1; n <= 3000; n += 1) await hub.publish('a', { data: n })
    const reader = connect('a', { cursor: start as string, types: ['rare'] })
    await environment.settle()
    expect(reader.events.map((event) => event.type)).toContain('checkpoint')
    expect(reader.lastId > (start as string)).toBe(true)
  })
})

test('readers that lost the same state together share one snapshot, and miss nothing published while it was read', async () => {
  let asked = 0
  let finish = (_state: unknown) => {}
  const { hub, environment, connect } = await openHub({
    log: memoryLog({ window: { maxEvents: 2 } }),
    hotBytes: 1,
    snapshot: () => {
      asked += 1
      return new Promise((resolve) => {
        finish = resolve
      })
    },
  })
  const ids = await publish(hub, 'a', 1, 2, 3, 4)
  const early = connect('a', { cursor: ids[0] as string })
  await environment.settle()
  await publish(hub, 'a', 5)
  const late = connect('a', { cursor: ids[0] as string })
  await environment.settle()
  finish({ upTo: 4 })
  await environment.settle()
  expect(asked).toBe(1)
  expect(early.data).toEqual(['5'])
  expect(late.data).toEqual(['5'])
})

describe('a snapshot', () => {
  function slowSnapshot() {
    const finish: ((state: unknown) => void)[] = []
    return { finish, snapshot: () => new Promise((resolve) => void finish.push(resolve)) }
  }

  test('that began before a reader lost anything is not shared with it: no cursor goes back, no alarm comes twice', async () => {
    const { finish, snapshot } = slowSnapshot()
    const { hub, environment, connect } = await openHub({ snapshot })
    const live = connect('a')
    connect('a', { cursor: 'nonsense' })
    await environment.settle()
    const ids = await publish(hub, 'a', 1, 2, 3)
    await environment.settle()
    await hub.invalidate('a')
    await environment.settle()
    for (const done of finish) done({})
    await environment.settle()
    await publish(hub, 'a', 4)
    await environment.settle()
    expect(finish).toHaveLength(2)
    const types = live.events.map((event) => event.type)
    expect(types).toEqual(['hello', 'message', 'message', 'message', 'sync-required', 'message'])
    expect((live.events[4]?.id as string) > (ids[2] as string)).toBe(true)
  })

  test('that takes longer than the window reaches back is dropped, and the reader goes on', async () => {
    const { finish, snapshot } = slowSnapshot()
    const { hub, environment, connect } = await openHub({
      ...{ log: memoryLog({ window: { maxEvents: 2 } }), hotBytes: 1, snapshot },
    })
    const ids = await publish(hub, 'a', 1, 2, 3, 4)
    const reader = connect('a', { cursor: ids[0] as string })
    await environment.settle()
    await publish(hub, 'a', 5, 6, 7, 8)
    finish[0]?.({ upTo: 4 })
    await environment.settle()
    await publish(hub, 'a', 9)
    await environment.settle()
    expect(reader.events.map((event) => event.type)).toEqual(['hello', 'sync-required', 'message'])
    expect(JSON.parse(reader.events[1]?.data ?? '')).not.toHaveProperty('snapshot')
    expect(reader.data).toEqual(['9'])
  })
})

test('a reader that asks for the last events of a window that moves on meanwhile is not alarmed', async () => {
  const { hub, environment, connect } = await openHub({ log: memoryLog({ window: { maxEvents: 3 } }), hotBytes: 1 })
  await publish(hub, 'a', 1, 2, 3, 4)
  const last = connect('a', { start: { from: 'last', events: 2 } })
  await publish(hub, 'a', 5, 6, 7, 8, 9)
  await environment.settle()
  expect(last.events.map((event) => event.type)).not.toContain('sync-required')
  expect([helloOf(last).replay, last.data]).toEqual([2, ['8', '9']])
})

test('a reader from the beginning of a window that moves on meanwhile is told once, and gets what is left', async () => {
  const { hub, environment, connect } = await openHub({ log: memoryLog({ window: { maxEvents: 3 } }), hotBytes: 1 })
  await publish(hub, 'a', 1, 2, 3)
  const earliest = connect('a', { start: { from: 'earliest' } })
  await publish(hub, 'a', 4, 5, 6, 7)
  await environment.settle()
  expect(syncsOf(earliest)).toEqual([expect.objectContaining({ reason: 'expired', requested: 'earliest' })])
  expect(earliest.data).toEqual(['5', '6', '7'])
})

test.each([
  ['on a stream', undefined],
  ['with a snapshot', () => ({ upTo: 'now' })],
])('a reader whose window moves on past all that its hub has heard of is told once, %s', async (_, snapshot) => {
  const log = laggingLog({ window: { maxEvents: 3 } })
  const { hub, environment, connect } = await openHub({ log: log.source, hotBytes: 1, ...(snapshot && { snapshot }) })
  const ids = await publish(hub, 'a', 1, 2, 3, 4, 5)
  log.hold()
  for (const data of [6, 7, 8, 9]) void hub.publish('a', { data })
  const reader = connect('a', { cursor: ids[0] as string })
  await environment.settle()
  log.releaseNewest()
  await environment.settle()
  await publish(hub, 'a', 10)
  await environment.settle()
  expect(syncsOf(reader)).toEqual([expect.objectContaining({ reason: 'expired', requested: ids[0] })])
  expect(reader.data.at(-1)).toBe('10')
})

describe('the beginning of a channel (§3.4)', () => {
  const smallWindow = () => memoryLog({ window: { maxEvents: 3 } })

  test('that is gone is announced first, and everything that is left follows', async () => {
    const { hub, environment, connect } = await openHub({ log: smallWindow() })
    const ids = await publish(hub, 'a', 1, 2, 3, 4, 5, 6)
    const reader = connect('a', { start: { from: 'earliest' } })
    await environment.settle()
    const [hello, sync, ...events] = reader.events
    expect([hello?.type, hello?.id]).toEqual(['hello', ''])
    expect(helloOf(reader)).toMatchObject({ resumed: false, requested: 'earliest' })
    expect([sync?.type, sync?.id]).toEqual(['sync-required', ids[2]])
    expect(syncsOf(reader)).toEqual([
      { reason: 'expired', channels: ['a'], requested: 'earliest', oldest: ids[3], latest: ids[2] },
    ])
    expect(events.map(({ data }) => data)).toEqual(['4', '5', '6'])
    await publish(hub, 'a', 7)
    await environment.settle()
    expect(reader.data).toEqual(['4', '5', '6', '7'])
  })

  test('that is still there is not announced as a gap', async () => {
    const { hub, environment, connect } = await openHub({ log: smallWindow() })
    await publish(hub, 'a', 1, 2, 3)
    const readers = ['a', 'b', ['a', 'b'], '*'].map((names) => connect(names, { start: { from: 'earliest' } }))
    await environment.settle()
    for (const reader of readers) expect([syncsOf(reader), helloOf(reader).replay]).toEqual([[], undefined])
  })

  test.each([
    ['one of several channels', ['a', 'b'], ['a']],
    ['a pattern', ['*'], ['*']],
  ])('of %s is announced with its name', async (_what, names, lost) => {
    const { hub, environment, connect } = await openHub({ log: smallWindow() })
    await publish(hub, 'b', 0)
    await publish(hub, 'a', 1, 2, 3, 4)
    const reader = connect(names, { start: { from: 'earliest' } })
    await environment.settle()
    expect(syncsOf(reader)).toEqual([expect.objectContaining({ reason: 'expired', channels: lost })])
    expect(reader.data).toEqual(['2', '3', '4'])
  })

  test('that was invalidated is announced with the reason forced', async () => {
    const { hub, environment, connect } = await openHub()
    await publish(hub, 'a', 1)
    await hub.invalidate('a')
    await publish(hub, 'a', 2)
    const reader = connect('a', { start: { from: 'earliest' } })
    await environment.settle()
    expect(syncsOf(reader)).toEqual([expect.objectContaining({ reason: 'forced' })])
    expect(reader.data).toEqual(['2'])
  })

  test('of a finished channel that is gone is announced before the end', async () => {
    const { hub, environment, connect } = await openHub({ log: smallWindow() })
    await publish(hub, 'a', 1, 2, 3, 4)
    await hub.end('a')
    for (const start of [{ from: 'earliest' } as const, { from: 'now' } as const]) {
      const reader = connect('a', { start })
      await environment.settle()
      expect(reader.events.map(({ type }) => type)).toEqual([
        ...['hello', 'sync-required', 'message', 'message', 'message', 'close'],
      ])
    }
  })

  test('of a channel that was forgotten is its first event after that', async () => {
    const environment = createVirtualEnvironment()
    const log = memoryLog({ window: { maxAgeMs: 1000 }, forgetAfterMs: 1000 })
    const { hub, connect } = await openHub({ log, environment })
    await publish(hub, 'a', 1)
    await environment.advance(60_000)
    await publish(hub, 'a', 2)
    const reader = connect('a', { start: { from: 'earliest' } })
    const never = connect('never', { start: { from: 'earliest' } })
    await environment.settle()
    expect([syncsOf(reader), reader.data]).toEqual([[], ['2']])
    expect(syncsOf(never)).toEqual([])
  })

  test.each([
    [5, 3, ['4', '5', '6']],
    [3, 3, ['4', '5', '6']],
    [2, 2, ['5', '6']],
    [0, 0, []],
  ])('hello says how many of replay=%i there are: %i', async (events, there, expected) => {
    const { hub, environment, connect } = await openHub({ log: smallWindow() })
    await publish(hub, 'a', 1, 2, 3, 4, 5, 6)
    const reader = connect('a', { start: { from: 'last', events } })
    await environment.settle()
    expect([helloOf(reader).replay, reader.data]).toEqual([there, expected])
  })

  test('hello counts only what follows: not what one channel holds from before another was trimmed', async () => {
    const { hub, environment, connect } = await openHub({ log: smallWindow() })
    await publish(hub, 'b', 0)
    await publish(hub, 'a', 1, 2, 3, 4)
    for (const names of [['a', 'b'], ['*']]) {
      const reader = connect(names, { start: { from: 'last', events: 9 } })
      await environment.settle()
      expect([helloOf(reader).replay, reader.data]).toEqual([3, ['2', '3', '4']])
    }
  })
})

describe('a channel that is declared to be read from its start (§3.4)', () => {
  test('is read from its start by a reader without a cursor, which is then live', async () => {
    const { hub, environment, connect } = await openHub({ fromStart: ['chats/*'] })
    await publish(hub, 'chats/1', 1, 2)
    const readers = ['chats/1', ['chats/1', 'chats/2'], 'chats/*'].map((names) => connect(names))
    await environment.settle()
    await publish(hub, 'chats/1', 3)
    await environment.settle()
    for (const reader of readers) {
      expect(reader.data).toEqual(['1', '2', '3'])
      expect(helloOf(reader)).toMatchObject({ resumed: false, requested: null })
    }
  })

  test('is read from the head together with a channel that is not declared so, and with replay=0', async () => {
    const { hub, environment, connect } = await openHub({ fromStart: ['chats/*'] })
    await publish(hub, 'chats/1', 1)
    const readers = [connect(['chats/1', 'news']), connect('chats/1', { start: { from: 'last', events: 0 } })]
    await environment.settle()
    for (const reader of readers) expect(reader.data).toEqual([])
  })

  test('tells a reader without a cursor when its beginning is gone', async () => {
    const log = memoryLog({ window: { maxEvents: 1 } })
    const { hub, environment, connect } = await openHub({ log, fromStart: ['*'] })
    await publish(hub, 'a', 1, 2)
    const reader = connect('a')
    await environment.settle()
    expect(syncsOf(reader)).toEqual([expect.objectContaining({ reason: 'expired', requested: 'earliest' })])
    expect(reader.data).toEqual(['2'])
  })
})

test('a filtered reader that was passed over old events holds a new id once it is live', async () => {
  const { hub, environment, connect } = await openHub()
  const ids = await publish(hub, 'a', 1, 2, 3)
  const reader = connect('a', { cursor: ids[0] as string, types: ['rare'] })
  await environment.settle()
  expect(reader.lastId).toBe(ids[2])
})

function helloOf(reader: Recorder) {
  return JSON.parse(reader.events.find(({ type }) => type === 'hello')?.data as string)
}

function syncsOf(reader: Recorder) {
  return reader.events.filter(({ type }) => type === 'sync-required').map(({ data }) => JSON.parse(data))
}
