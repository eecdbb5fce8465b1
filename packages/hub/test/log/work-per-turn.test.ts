import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { type ChannelMessage, createHub, type Hub, type LogSource, systemEnvironment } from '@rejoin/hub'
import { createSubscription, type Start } from '@rejoin/hub/internal'
import { lmdbLog } from '@rejoin/hub/lmdb'
import type { Log, NewEvent } from '@rejoin/hub/log'
import { memoryLog } from '@rejoin/hub/memory'
import { isAfter, origin, type Position } from '@rejoin/protocol'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { temporaryFolder } from '../../../../test/support/temporary-folder.ts'
import type { Store } from '../../src/log/lmdb/files/store.ts'

// How long a turn is depends on the machine; how much is done in it does not. So work is counted: every entry that is taken
// from the embedded log's file, every place that is compared, every name that is looked at for a prefix. The clock of the
// hub is moved by that work alone, by somewhat more than it takes on a slow machine.
const work = vi.hoisted(() => ({ ms: 0, entry: 0.005, look: 0.0005, names: 0 }))
const longestTurnMs = 20
const stores = vi.hoisted<Store[]>(() => [])

vi.mock('@rejoin/protocol', async (original) => {
  const protocol = await original<typeof import('@rejoin/protocol')>()
  const isAfter: typeof protocol.isAfter = (a, b) => {
    work.ms += work.look
    return protocol.isAfter(a, b)
  }
  return { ...protocol, isAfter }
})

vi.mock('../../src/log/lmdb/files/store.ts', async (original) => {
  const store = await original<typeof import('../../src/log/lmdb/files/store.ts')>()
  function* counted<Item>(items: Iterable<Item>): Generator<Item> {
    for (const item of items) {
      work.ms += work.entry
      yield item
    }
  }
  return {
    ...store,
    async openStore(...args: Parameters<typeof store.openStore>): Promise<Store> {
      const opened = await store.openStore(...args)
      stores.push(opened)
      return {
        ...opened,
        get(key) {
          work.ms += work.entry
          return opened.get(key)
        },
        range: (start, end) => counted(opened.range(start, end)),
        rangeBack: (start, end) => counted(opened.rangeBack(start, end)),
        keys: (start, end) => counted(opened.keys(start, end)),
        write(changes) {
          work.ms += work.entry * (changes.puts.length + changes.removals.length)
          return opened.write(changes)
        },
      }
    },
  }
})

// Not by a spy, which would keep a record of a million calls.
const { startsWith } = String.prototype
beforeAll(() => {
  String.prototype.startsWith = function counted(...args) {
    work.ms += work.look
    work.names += 1
    return startsWith.apply(this, args)
  }
})
afterAll(() => {
  String.prototype.startsWith = startsWith
})

const channels = 6000
const full = 1500

/** Runs a task and gives the most that was done in one turn of the event loop meanwhile, in ms of that work. */
async function longestTurn(task: () => Promise<unknown>): Promise<number> {
  let most = 0
  let before = work.ms
  let isOver = false
  const turn = () => {
    most = Math.max(most, work.ms - before)
    before = work.ms
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  await task()
  isOver = true
  await new Promise((resolve) => setImmediate(resolve))
  return Math.max(most, work.ms - before)
}

const { folder, remove } = temporaryFolder()
afterAll(remove)

const logs: [name: string, source: LogSource][] = [
  ['memory', memoryLog({ window: { maxEvents: full } })],
  ['embedded', lmdbLog(folder, { window: { maxEvents: full } })],
]

describe.each(logs)('with many channels in the %s log, no turn is held up', (_, source) => {
  const hubs: Hub[] = []
  const ids: string[] = []

  // One log for both hubs: one that has its events in memory, and one that has to read all of them, with limits.
  beforeAll(async () => {
    const started = Date.now()
    const environment = { ...systemEnvironment, now: () => started + work.ms }
    const log = await source.open(environment)
    const close = log.close.bind(log)
    const append = (names: readonly string[]) =>
      log.append(
        names.map((channel) => ({ channel, type: 'message', data: 'x' })),
        { token: `${work.ms}` },
      )
    const shared: LogSource = {
      name: source.name,
      open: async () => Object.assign(log, { close: async () => undefined }),
    }
    hubs.push(await createHub({ log: shared, environment, retain: ['kept/*'] }))
    hubs.push(
      await createHub({ ...{ log: shared, environment, hotBytes: 1 }, maxReplayEvents: 1e9, maxReplayAgeMs: 1e12 }),
    )
    const published = await hubs[0]?.publish('first', { data: 1 })
    ids.push(published?.id as string)
    for (let made = 0; made < full; made += 100) await Promise.all(Array.from({ length: 100 }, () => append(['full'])))
    for (let made = 0; made < channels; made += 500) {
      await append(Array.from({ length: 500 }, (_, index) => `many/${made + index}`))
    }
    const last = await hubs[0]?.publish('last', { data: 1 })
    ids.push(last?.id as string)
    return async () => {
      for (const hub of hubs) await hub.close()
      await close()
    }
  })

  const names = [['full'], ['*'], ['many/*'], ['nothing/*', 'full'], Array.from({ length: 100 }, (_, n) => `many/${n}`)]
  const starts = (): Start[] => [
    { from: 'earliest' },
    ...[0, 1, 700, 999_999_999].map((events) => ({ from: 'last' as const, events })),
    ...[ids[0], ids[1], 'nonsense'].map((cursor) => ({ from: 'cursor' as const, cursor: cursor as string })),
  ]

  test.each(names)('by a poll of %s, wherever it starts and whatever it filters', async (...asked) => {
    for (const hub of hubs) {
      for (const start of starts()) {
        for (const types of [[], ['none']]) {
          const subscription = createSubscription(asked, types)
          const ms = await longestTurn(() => hub.port.poll({ subscription, start }, { waitMs: 0 }))
          expect({ asked: asked[0], start, types, isLong: ms > longestTurnMs && ms }).toMatchObject({ isLong: false })
        }
      }
    }
  })

  test('by fifty readers of a pattern with a bad cursor', async () => {
    const subscription = createSubscription(['*'])
    const poll = () =>
      hubs[0]?.port.poll({ subscription, start: { from: 'cursor', cursor: 'nonsense' } }, { waitMs: 0 })
    expect(await longestTurn(() => Promise.all(Array.from({ length: 50 }, poll)))).toBeLessThan(longestTurnMs)
  })

  const thousand = (channelOf: (index: number) => string, keyOf?: (index: number) => string) =>
    Array.from({ length: 1000 }, (_, index) => ({
      ...{ channel: channelOf(index), data: index },
      ...(keyOf && { key: keyOf(index) }),
    }))
  const batches: [what: string, batch: ChannelMessage[]][] = [
    ['to a thousand channels', thousand((index) => `many/${index}`)],
    ['to a thousand channels that retain it', thousand((index) => `kept/${index}`)],
    ['of a thousand keys', thousand(() => 'kept/one', String)],
  ]
  test.each(batches)('by four publishers at once, each with a batch %s', async (_what, batch) => {
    // The second time, everything is there and has to be looked up.
    for (let time = 0; time < 2; time += 1) {
      const publish = () => hubs[0]?.publishBatch(batch)
      expect(await longestTurn(() => Promise.all(Array.from({ length: 4 }, publish)))).toBeLessThan(longestTurnMs)
    }
  })

  test('by an operator who looks at a pattern, or lists channels', async () => {
    const looks = [
      () => hubs[0]?.admin.window('*'),
      () => hubs[0]?.admin.window('many/*'),
      () => hubs[0]?.admin.channels({ limit: 1000 }),
      () => hubs[0]?.admin.channels({ prefix: 'many/', after: 'many/5', limit: 1000 }),
    ]
    for (const look of looks) expect(await longestTurn(async () => look())).toBeLessThan(longestTurnMs)
  })
})

describe.each([
  ['memory', (maxBytes: number) => memoryLog({ maxBytes })],
  ['embedded', (maxBytes: number) => lmdbLog(mkdtempSync(join(folder, 'budget-')), { maxBytes, durability: 'os' })],
])('in the %s log at its budget', (_, source) => {
  const held = 5000
  const environment = { ...systemEnvironment, now: () => started + work.ms }
  const started = Date.now()

  test('no turn is held up by a publish that a thousand older events have to make room for, and they go in the end', async () => {
    const log = await source(held).open(environment)
    const append = (channel: (index: number) => string, data: string, events: number) =>
      log.append(
        Array.from({ length: events }, (_, index) => ({ channel: channel(index), type: '', data })),
        { token: '' },
      )
    for (let made = 0; made < held; made += 500) await append((index) => `room/${made + index}`, 'x', 500)
    expect(await log.budget?.()).toMatchObject({ usedBytes: held })
    const ms = await longestTurn(async () => {
      await append(() => 'large', 'y'.repeat(4000), 1)
      await vi.waitUntil(async () => (await log.budget?.())?.usedBytes === held, { timeout: 10_000, interval: 1 })
    })
    expect(ms).toBeLessThan(longestTurnMs)
    expect((await log.windows(['room/*']))[0]).toMatchObject({ events: 1000 })
    const publishes = () => append((index) => `new/${index}`, 'x', 1000)
    for (let time = 0; time < 4; time += 1) expect(await longestTurn(publishes)).toBeLessThan(longestTurnMs)
    await log.close()
  })
})

describe('in the embedded log, with a channel of many records', () => {
  const records = 1200
  // As long as each takes where the file is not in memory, so that fewer of them fill a turn.
  const slowEntry = 0.05
  const usualEntry = work.entry
  const { folder, remove } = temporaryFolder()
  let agedMs = 0
  let log: Log

  beforeEach(async () => {
    work.entry = 0
    agedMs = 0
    const environment = { ...systemEnvironment, now: () => started + agedMs + work.ms }
    const started = Date.now() - work.ms
    const window = { maxEvents: 10_000, maxAgeMs: 60_000 }
    log = await lmdbLog(mkdtempSync(join(folder, 'log-')), { window, durability: 'os' }).open(environment)
    // One after the other, for a commit each.
    for (let made = 0; made < records; made += 1) await append('full', 1)
    work.entry = slowEntry
  })

  afterEach(async () => {
    work.entry = usualEntry
    await log.close()
  })
  afterAll(remove)

  const append = (channel: string, events: number) =>
    log.append(
      Array.from({ length: events }, () => ({ channel, type: 'message', data: 'x' })),
      { token: '' },
    )

  /** Resolves when the file holds so many records: what the log lets go of, it lets go of by and by. */
  const holds = (records: number) =>
    vi.waitUntil(() => recordsIn(stores.at(-1) as Store) === records, { timeout: 10_000, interval: 5 })

  test('no turn is held up by a reader of the channel when all of it has grown too old', async () => {
    agedMs = 120_000
    const head = await log.head()
    const ms = await longestTurn(() => log.read(['full'], origin, head, { events: 10, bytes: 10 }))
    expect(ms).toBeLessThan(2 * trimmedAtATime * slowEntry)
    await holds(0)
    const page = await log.read(['full'], origin, head, { events: 10, bytes: 10 })
    expect(page).toMatchObject({ events: [], gap: { reason: 'expired', wholeAfter: head } })
  })

  test('no turn is held up by a publish to the channel, and its old events go in the end', async () => {
    agedMs = 120_000
    const before = await log.head()
    const ms = await longestTurn(async () => {
      await append('full', 1)
      await holds(1)
    })
    expect(ms).toBeLessThan(2 * trimmedAtATime * slowEntry)
    const page = await log.read(['full'], before, await log.head(), { events: 10, bytes: 1000 })
    expect(page.events).toHaveLength(1)
  })

  test('no turn is held up by an invalidation of the channel, none of it is served again, and its room is given back', async () => {
    const before = await log.head()
    const ms = await longestTurn(() => log.invalidate('full'))
    expect(ms).toBeLessThan(2 * trimmedAtATime * slowEntry)
    await append('full', 1)
    const head = await log.head()
    for (const names of [['full'], ['*']]) {
      const page = await log.read(names, before, head, { events: 10, bytes: 1000 })
      expect(page.gap).toMatchObject({ reason: 'forced' })
      const behind = await log.read(names, page.gap?.wholeAfter as Position, head, { events: 10, bytes: 1000 })
      expect(behind.events).toHaveLength(1)
      const back = await log.readBack?.(names, origin, head, 10)
      expect(back?.positions).toHaveLength(1)
    }
    await holds(1)
  })
})

describe('in the embedded log, after a commit of which the window has let go in part', () => {
  const { folder, remove } = temporaryFolder()
  afterAll(remove)

  test('the last events of a pattern, and what a reader has lost of it, are found without a look at every channel', async () => {
    const log = await lmdbLog(folder, { window: { maxEvents: 5 } }).open(systemEnvironment)
    const append = (names: readonly string[]) =>
      log.append(
        names.map((channel) => ({ channel, type: 'message', data: 'x' })),
        { token: '' },
      )
    for (let made = 0; made < channels; made += 1000)
      await append(Array.from({ length: 1000 }, (_, index) => `many/${made + index}`))
    const before = await log.head()
    await append(Array.from({ length: 8 }, () => 'busy'))
    await append(['many/1'])
    const [head, limit] = [await log.head(), { events: 100, bytes: 10_000 }]
    const look = channels * work.entry
    let ms = work.ms
    const back = await log.readBack?.(['*'], origin, head, 4)
    expect(back?.positions).toHaveLength(4)
    const page = await log.read(['*'], before, head, limit)
    expect(page.gap).toMatchObject({ channels: ['*'], reason: 'expired' })
    // Also for a reader that stands within that commit.
    const { events } = await log.read(['*'], page.gap?.wholeAfter as Position, head, limit)
    expect(events.map(({ channel }) => channel)).toEqual([...Array.from({ length: 5 }, () => 'busy'), 'many/1'])
    ms = work.ms - ms
    expect(ms).toBeLessThan(look / 10)
    await log.close()
  })
})

test('in the memory log, what a pattern retains is found without a look at channels that retain nothing', async () => {
  const log = await memoryLog().open(systemEnvironment)
  const append = (events: readonly NewEvent[]) => log.append(events, { token: '' })
  await append(Array.from({ length: 1000 }, (_, index) => ({ channel: `many/${index}`, type: 'message', data: 'x' })))
  const keyed = { channel: 'kept', type: 'message', data: 'x', key: 'k' }
  for (const events of [[keyed], [{ ...keyed, forget: true }], [keyed]]) await append(events)
  const before = work.names
  expect(await log.retained(['*'])).toHaveLength(1)
  expect(work.names - before).toBe(1)
  await log.invalidate('kept')
  expect(await log.retained(['*'])).toEqual([])
  expect(work.names - before).toBe(1)
  await log.close()
})

describe('from before the feed of the memory log', () => {
  const limit = { events: 100, bytes: 1e6 }
  const many = 2000

  async function openFar(): Promise<Log> {
    const log = await memoryLog({ window: { maxEvents: 2 } }).open(systemEnvironment)
    const append = (names: readonly string[]) =>
      log.append(
        names.map((channel) => ({ channel, type: 'message', data: 'x' })),
        { token: '' },
      )
    await append(Array.from({ length: many }, (_, index) => `many/${(7 * index) % many}`))
    await append(Array.from({ length: many }, (_, index) => `many/${(11 * index) % many}`))
    // More than the feed holds.
    for (let made = 0; made < 130; made += 1) await append(Array.from({ length: 1000 }, () => 'other'))
    return log
  }

  test('a reader of a pattern gets every event in order, for one look at the channels for many pages', async () => {
    const log = await openFar()
    const head = await log.head()
    const before = work.names
    const channels: string[] = []
    let pages = 0
    for (let cursor = origin; isAfter(head, cursor); pages += 1) {
      const page = await log.read(['many/*'], cursor, head, limit)
      for (const event of page.events) channels.push(event.channel)
      cursor = page.completeThrough
    }
    const looked = work.names - before
    const inOrder = [7, 11].flatMap((step) =>
      Array.from({ length: many }, (_, index) => `many/${(step * index) % many}`),
    )
    expect(channels).toEqual(inOrder)
    expect(pages).toBeGreaterThan((2 * many) / limit.events)
    expect(looked).toBeLessThan(3 * many)
    await log.close()
  })

  test('a reader of a pattern is told of a channel that was invalidated between two pages', async () => {
    const log = await openFar()
    const head = await log.head()
    const first = await log.read(['many/*'], origin, head, limit)
    expect(first.events).toHaveLength(limit.events)
    await log.invalidate('many/3')
    const next = await log.read(['many/*'], first.completeThrough, await log.head(), limit)
    expect(next.gap).toMatchObject({ channels: ['many/*'], reason: 'forced' })
    await log.close()
  })
})

// As in lmdb/commit/trim.ts.
const trimmedAtATime = 512

function recordsIn(store: Store): number {
  return [...store.keys(Buffer.from('E'), Buffer.from('F'))].length
}
