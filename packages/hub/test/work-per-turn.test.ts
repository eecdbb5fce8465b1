import { createHub, createSubscription, type Hub, type LogSource, type Start, systemEnvironment } from '@rejoin/hub'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { memoryLog } from '@rejoin/hub/memory'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Store } from '../src/log/lmdb/store.ts'
import { temporaryFolder } from './temporary-folder.ts'

// How long a turn is depends on the machine; how much is done in it does not. So work is counted: every entry that is taken
// from the embedded log's file, every place that is compared, every name that is looked at for a prefix. The clock of the
// hub is moved by that work alone, by somewhat more than it takes on a slow machine.
const work = vi.hoisted(() => ({ ms: 0, entry: 0.005, look: 0.0005 }))
const longestTurnMs = 20

vi.mock('@rejoin/protocol', async (original) => {
  const protocol = await original<typeof import('@rejoin/protocol')>()
  const isAfter: typeof protocol.isAfter = (a, b) => {
    work.ms += work.look
    return protocol.isAfter(a, b)
  }
  return { ...protocol, isAfter }
})

vi.mock('../src/log/lmdb/store.ts', async (original) => {
  const store = await original<typeof import('../src/log/lmdb/store.ts')>()
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
      return {
        ...opened,
        get(key) {
          work.ms += work.entry
          return opened.get(key)
        },
        range: (start, end) => counted(opened.range(start, end)),
        rangeBack: (start, end) => counted(opened.rangeBack(start, end)),
      }
    },
  }
})

// Not by a spy, which would keep a record of a million calls.
const { startsWith } = String.prototype
beforeAll(() => {
  String.prototype.startsWith = function counted(...args) {
    work.ms += work.look
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
          const ms = await longestTurn(() => hub.poll({ subscription, start }, { waitMs: 0 }))
          expect({ asked: asked[0], start, types, isLong: ms > longestTurnMs && ms }).toMatchObject({ isLong: false })
        }
      }
    }
  })

  test('by fifty readers of a pattern with a bad cursor', async () => {
    const subscription = createSubscription(['*'])
    const poll = () => hubs[0]?.poll({ subscription, start: { from: 'cursor', cursor: 'nonsense' } }, { waitMs: 0 })
    expect(await longestTurn(() => Promise.all(Array.from({ length: 50 }, poll)))).toBeLessThan(longestTurnMs)
  })

  test('by an operator who looks at a pattern, or lists channels', async () => {
    const looks = [
      () => hubs[0]?.window('*'),
      () => hubs[0]?.window('many/*'),
      () => hubs[0]?.channels({ limit: 1000 }),
      () => hubs[0]?.channels({ prefix: 'many/', after: 'many/5', limit: 1000 }),
    ]
    for (const look of looks) expect(await longestTurn(async () => look())).toBeLessThan(longestTurnMs)
  })
})
