import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { describe, expect, test, vi } from 'vitest'
import { publish } from '../../support/publishing.ts'
import { openHub } from '../../support/recorder.ts'

describe('a slow reader', () => {
  test('is pushed no more than its budget and one turn, and gets the rest when it reads on', async () => {
    const { hub, environment, connect } = await openHub()
    const slow = connect('a', { fullAfter: 1000 })
    const fast = connect('a')
    await environment.settle()
    const text = 'x'.repeat(300)
    for (let n = 0; n < 50; n += 1) {
      await hub.publish('a', { data: { n, text } })
      await environment.settle()
    }
    expect(fast.data).toHaveLength(50)
    expect(slow.text.length).toBeLessThan(2000)
    for (let turns = 0; turns < 60; turns += 1) {
      slow.drain()
      await environment.settle()
    }
    expect(slow.data).toEqual(fast.data)
  })

  test('that reads nothing for a minute is given up; one that reads a little is not', async () => {
    const { hub, environment, connect } = await openHub()
    const dead = connect('a', { fullAfter: 100 })
    const slow = connect('b', { fullAfter: 100 })
    const stalls: string[] = []
    hub.on('stall', ({ connection }) => stalls.push(connection))
    for (let minutes = 0; minutes < 3; minutes += 1) {
      await publish(hub, 'a', 1, 2, 3)
      await publish(hub, 'b', 1, 2, 3)
      await environment.advance(40_000)
      slow.drain()
    }
    expect([dead.destroyed, dead.session.mode]).toEqual([true, 'ended'])
    expect([slow.destroyed, slow.ended]).toEqual([false, false])
    expect(stalls).toEqual([dead.session.connection])
  })

  test('gets no heartbeats while bytes wait for it', async () => {
    const { hub, environment, connect } = await openHub()
    const reader = connect('a', { fullAfter: 100 })
    await publish(hub, 'a', 1)
    await environment.settle()
    const before = reader.text
    await environment.advance(50_000)
    expect(reader.text).toBe(before)
  })
})

describe('heartbeats and retry', () => {
  test('every reader hears something once per interval (§4.7)', async () => {
    const { environment, connect } = await openHub({ heartbeatMs: 10_000 })
    const readers = Array.from({ length: 30 }, () => connect('a'))
    await environment.advance(10_000)
    expect(readers.map((reader) => reader.text.split(': hb').length - 1)).toEqual(Array(30).fill(1))
  })

  test('readers are told different times to come back, all near the base (§4.11)', async () => {
    const { environment, connect } = await openHub({ retryMs: 5000 })
    const readers = Array.from({ length: 20 }, () => connect('a'))
    await environment.settle()
    const told = readers.map((reader) => Number(/retry: (\d+)/.exec(reader.text)?.[1]))
    expect(Math.min(...told)).toBeGreaterThanOrEqual(5000)
    expect(Math.max(...told)).toBeLessThanOrEqual(6000)
    expect(new Set(told).size).toBeGreaterThan(10)
  })

  test('when the hub runs short of memory, readers are told a longer time with their next heartbeat', async () => {
    let heapUsed = 0.1
    const { environment, connect } = await openHub({ heartbeatMs: 10_000 })
    Object.assign(environment, { heapUsed: () => heapUsed })
    const reader = connect('a')
    await environment.settle()
    heapUsed = 0.95
    await environment.advance(20_000)
    const told = [...reader.text.matchAll(/retry: (\d+)/g)].map(([, ms]) => Number(ms))
    expect(told.at(-1)).toBeGreaterThan(10_000)
  })

  test('channels have times of their own; the narrowest name counts, and of several channels the longest time', async () => {
    const retries = { 'prices/*': 500, 'prices/slow/*': 9000, 'prices/slow/1': 1000 }
    const { environment, connect } = await openHub({ retryMs: 4000, retries })
    const asked = ['news', 'prices/1', 'prices/*', 'prices/slow/2', 'prices/slow/1', ['prices/1', 'news'], '*']
    const readers = asked.map((channels) => connect(channels))
    await environment.settle()
    const told = readers.map((reader) => Number(/retry: (\d+)/.exec(reader.text)?.[1]))
    const bases = [4000, 500, 500, 9000, 1000, 4000, 4000]
    expect(told.filter((ms, index) => ms < (bases[index] ?? 0) || ms > 1.2 * (bases[index] ?? 0))).toEqual([])
  })

  test('a channel’s own time is in its close, in its rejection and in a heartbeat that raises it', async () => {
    let heapUsed = 0.1
    const options = { heartbeatMs: 10_000, retries: { 'prices/*': 7000 }, limits: { maxConnections: 1 } }
    const { hub, environment, connect } = await openHub(options)
    Object.assign(environment, { heapUsed: () => heapUsed })
    const reader = connect('prices/1')
    const rejected = connect('prices/2')
    await environment.settle()
    heapUsed = 0.95
    await environment.advance(10_000)
    heapUsed = 0.1
    await environment.advance(60_000)
    expect(rejected.text).toMatch(/^retry: (?:[7-9]|[1-3]\d)\d{3}\nevent: close/)
    const [hello, raised, , last] = [...reader.text.matchAll(/retry: (\d+)/g)].map(([, ms]) => Number(ms))
    expect(hello).toBeLessThan(8401)
    expect(raised).toBeGreaterThan(13_999)
    expect(last).toBeGreaterThan(6999)
    hub.admin.disconnectHere(reader.session.connection)
    expect(reader.text).toMatch(/retry: (?:[7-9]|[1-3]\d)\d{3}\nevent: close\ndata: {"reason":"admin"}\n\n$/)
  })

  test('a time for a name that is none is rejected before the log is opened', async () => {
    const open = vi.fn()
    const hub = createHub({ log: { name: 'untouched', open }, retries: { 'prices*': 500 } })
    await expect(hub).rejects.toMatchObject({ code: 'invalid-channel' })
    expect(open).not.toHaveBeenCalled()
  })

  test.each([{ 'prices/*': 0 }, { 'prices*': 500 }, { '': 500 }])('times of %j are rejected', async (retries) => {
    await expect(openHub({ retries })).rejects.toMatchObject({ code: expect.stringContaining('invalid-') })
  })

  test('adaptive: the base follows the number of connections', async () => {
    const { environment, connect } = await openHub({ retryMs: 'adaptive' })
    const first = connect('a')
    await environment.settle()
    for (let index = 0; index < 10_000; index += 1) connect('a')
    const last = connect('a')
    await environment.settle()
    expect(first.text).toMatch(/^retry: 2\d\d\d\n/)
    expect(last.text).toMatch(/^retry: (?:[5-9]|10)\d\d\d\n/)
  })

  test('readers of a hub that vanishes return at 2,000 a second at worst, also those that came first (§4.11)', async () => {
    const { environment, connect } = await openHub({ heartbeatMs: 10_000 })
    const readers = Array.from({ length: 12_000 }, () => connect('a'))
    await environment.advance(10_000)
    const told = readers.map(({ text }) => Number([...text.matchAll(/retry: (\d+)/g)].at(-1)?.[1]))
    const perSecond = new Map<number, number>()
    for (const ms of told) perSecond.set(Math.floor(ms / 1000), (perSecond.get(Math.floor(ms / 1000)) ?? 0) + 1)
    // Chance puts 2,000 ± 45 into a second: five deviations more is a fault.
    expect(Math.max(...perSecond.values())).toBeLessThan(2250)
    expect(Math.min(...told)).toBeGreaterThanOrEqual(2000)
    expect(Math.max(...told)).toBeLessThanOrEqual(8000)
  })

  test('readers of a hub whose time is near the limit are spread as well, and not all told the limit (§4.11)', async () => {
    const { environment, connect } = await openHub({ retryMs: 59_000 })
    const readers = Array.from({ length: 12_000 }, () => connect('a'))
    await environment.settle()
    const told = readers.map(({ text }) => Number(/retry: (\d+)/.exec(text)?.[1]))
    expect(Math.max(...told)).toBeLessThanOrEqual(72_000)
    expect(new Set(told).size).toBeGreaterThan(5000)
  })

  test('a few readers are told a short time, and told it once', async () => {
    const { environment, connect } = await openHub({ heartbeatMs: 10_000 })
    const readers = Array.from({ length: 500 }, () => connect('a'))
    await environment.advance(30_000)
    const told = readers.map(({ text }) => [...text.matchAll(/retry: (\d+)/g)].map(([, ms]) => Number(ms)))
    expect(told.filter(([first = 0, ...again]) => first > 2400 || again.length > 0)).toEqual([])
  })
})

describe('a hub that is drained', () => {
  test('can tell readers a longer time to return before it ends a stream, each a time of its own (§4.11)', async () => {
    const { hub, environment, connect } = await openHub()
    const readers = Array.from({ length: 40 }, () => connect('a'))
    await environment.settle()
    const drained = hub.drain({ withinMs: 1000, announceMs: 4000 })
    await environment.advance(3999)
    const told = readers.map((reader) => [...reader.text.matchAll(/retry: (\d+)/g)].map(([, ms]) => Number(ms)))
    expect(told.every(({ length }) => length === 2)).toBe(true)
    expect(Math.max(...told.map(([, announced = 0]) => announced))).toBeGreaterThan(5000)
    expect(new Set(told.map(([, announced]) => announced)).size).toBeGreaterThan(30)
    expect(readers.some((reader) => reader.ended)).toBe(false)
    await environment.advance(1002)
    await drained
    expect(readers.every((reader) => reader.ended)).toBe(true)
  })

  test('ends its streams spread over the time given, each with a longer, different retry (§4.10)', async () => {
    const { hub, environment, connect } = await openHub()
    const readers = Array.from({ length: 40 }, () => connect('a'))
    await environment.settle()
    const drained = hub.drain({ withinMs: 10_000, reason: 'maintenance' })
    await environment.advance(5000)
    const half = readers.filter((reader) => reader.ended).length
    expect(half).toBeGreaterThan(5)
    expect(half).toBeLessThan(35)
    await environment.advance(5001)
    await drained
    const closes = readers.map((reader) => reader.text.slice(reader.text.lastIndexOf('retry: ')))
    expect(closes.every((text) => text.includes('{"reason":"maintenance"}'))).toBe(true)
    expect(new Set(closes).size).toBeGreaterThan(30)
  })

  test('rejects new readers with a time to return, and moves no cursor', async () => {
    const { hub, environment, connect } = await openHub()
    await publish(hub, 'a', 1)
    void hub.drain({ withinMs: 1000 })
    const late = connect('a')
    await environment.settle()
    expect(late.events.map((event) => event.type)).toEqual(['close'])
    expect([late.ended, late.lastId]).toEqual([true, ''])
  })
})

describe('rights (§7)', () => {
  const grant = { subject: 'ada', subscribe: ['*'] }

  test('a stream ends when its rights expire', async () => {
    const { environment, connect } = await openHub()
    const reader = connect('a', { rights: { grant: { ...grant, expiresAt: environment.now() + 60_000 } } })
    await environment.advance(59_000)
    expect(reader.ended).toBe(false)
    await environment.advance(1000)
    expect(reader.events.at(-1)).toMatchObject({ type: 'close', data: '{"reason":"token-expired"}' })
  })

  test('a revoked subject is sent nothing more, in the middle of a replay neither; others stay', async () => {
    const { hub, environment, connect } = await openHub({ hotBytes: 1 })
    const ids = await publish(hub, 'a', 1, 2, 3)
    const revoked = connect('a', { cursor: ids[0] as string, rights: { grant } })
    const other = connect('a', { rights: { grant: { ...grant, subject: 'bob' } } })
    hub.revoke('ada')
    await environment.settle()
    await publish(hub, 'a', 4)
    await environment.settle()
    expect(revoked.data).toEqual([])
    expect(revoked.ended).toBe(true)
    expect(other.data).toEqual(['4'])
  })

  test('rights that shrank meanwhile end a slow reader before it reads on', async () => {
    const { hub, environment, connect } = await openHub({ hotBytes: 1 })
    let current: typeof grant | null = grant
    const reader = connect('a', { fullAfter: 300, rights: { grant, renew: async () => current } })
    for (let n = 0; n < 10; n += 1) {
      await publish(hub, 'a', n)
      await environment.settle()
    }
    current = null
    await environment.advance(6000)
    const before = reader.data.length
    reader.drain()
    await environment.settle()
    expect(reader.data).toHaveLength(before)
    expect(reader.events.at(-1)).toMatchObject({ type: 'close', data: '{"reason":"token-expired"}' })
  })
})

describe('one client, one connection (§4.13)', () => {
  const rights = { grant: { subject: 'ada', subscribe: ['*'] } }

  test('a higher attempt ends the older connection of the same client and subject', async () => {
    const { environment, connect } = await openHub()
    const first = connect('a', { rights, client: { id: 'tab-1', attempt: 1 } })
    const otherTab = connect('a', { rights, client: { id: 'tab-2', attempt: 1 } })
    const impostor = connect('a', {
      rights: { grant: { ...rights.grant, subject: 'eve' } },
      client: { id: 'tab-1', attempt: 9 },
    })
    const second = connect('a', { rights, client: { id: 'tab-1', attempt: 2 } })
    await environment.settle()
    expect([first, otherTab, impostor, second].map((reader) => reader.ended)).toEqual([true, false, false, false])
    expect(first.events.at(-1)?.data).toBe('{"reason":"replaced"}')
  })

  test('a late duplicate of an older attempt ends nobody', async () => {
    const { environment, connect } = await openHub()
    const second = connect('a', { rights, client: { id: 'tab-1', attempt: 2 } })
    connect('a', { rights, client: { id: 'tab-1', attempt: 1 } })
    await environment.settle()
    expect(second.ended).toBe(false)
  })

  test("without rights nobody can end another's connection", async () => {
    const { environment, connect } = await openHub()
    const first = connect('a', { client: { id: 'tab-1', attempt: 1 } })
    connect('a', { client: { id: 'tab-1', attempt: 2 } })
    await environment.settle()
    expect(first.ended).toBe(false)
  })
})

test('observations of a reader say who it is', async () => {
  const { hub, environment, connect } = await openHub()
  const told: [string, object][] = []
  for (const kind of ['connect', 'replay', 'gap', 'close'] as const) hub.on(kind, (facts) => told.push([kind, facts]))
  const reader = { ip: '10.0.0.1', userAgent: 'curl', subject: null }
  const [id] = await publish(hub, 'a', 1, 2)
  connect('a', { cursor: id as string, reader }).session.disconnected()
  connect('a', { cursor: 'nonsense', reader })
  await environment.settle()
  expect(told.map(([kind]) => kind)).toEqual(['connect', 'close', 'connect', 'gap'])
  expect(told[0]?.[1]).toMatchObject({ ...reader, channels: ['a'], requested: id, resuming: true })
  expect(told[3]?.[1]).toMatchObject({ ...reader, reason: 'unknown-id', requested: 'nonsense' })
})

test('the absence of a reader is measured from the first event it missed', async () => {
  const { hub, environment, connect } = await openHub()
  const told: (number | null)[] = []
  hub.on('replay', ({ absenceMs }) => told.push(absenceMs))
  const [id] = await publish(hub, 'a', 1)
  await environment.advance(40_000)
  await publish(hub, 'a', 2)
  await environment.advance(3000)
  connect('a', { cursor: id as string })
  await environment.settle()
  const [newest] = await publish(hub, 'a', 3)
  connect('a', { cursor: newest as string })
  await environment.settle()
  expect(told).toEqual([3000, null])
})

test('a hub says what a channel holds', async () => {
  const { hub } = await openHub()
  const [first, , last] = await publish(hub, 'a', 1, 2, 3)
  expect(await hub.admin.window('a')).toMatchObject({ events: 3, oldest: first, newest: last })
  expect(await hub.admin.window('b')).toMatchObject({ events: 0, oldest: null, newest: null })
})

describe('a failure that must not harm others', () => {
  test('a sink that throws ends its own session; everybody else goes on', async () => {
    const { hub, environment, connect } = await openHub()
    const broken = connect('a')
    const same = connect('a')
    const other = connect(['a', 'b'])
    await environment.settle()
    broken.write = () => {
      throw new Error('gone')
    }
    for (const n of [1, 2, 3]) {
      await publish(hub, 'a', n)
      await environment.settle()
    }
    expect([broken.session.mode, broken.destroyed]).toEqual(['ended', true])
    expect(same.data).toEqual(['1', '2', '3'])
    expect(other.data).toEqual(['1', '2', '3'])
  })

  test('a sink that throws while its reader catches up leaves no session behind', async () => {
    const { hub, environment, connect } = await openHub()
    const ids = await publish(hub, 'a', 1, 2)
    const broken = connect('a', { cursor: ids[0] as string })
    let writes = 0
    broken.write = () => {
      writes += 1
      throw new Error('gone')
    }
    await environment.settle()
    await publish(hub, 'a', 3)
    await environment.settle()
    expect([broken.session.mode, writes]).toEqual(['ended', 1])
  })

  test('a full reader that the hub ends is cut at once, and holds nothing', async () => {
    const { hub, environment, connect } = await openHub()
    const rights = { grant: { subject: 'ada', subscribe: ['*'] } }
    const reader = connect('a', { fullAfter: 100, rights })
    await publish(hub, 'a', 1, 2)
    await environment.settle()
    hub.revoke('ada')
    expect([reader.destroyed, reader.session.mode]).toEqual([true, 'ended'])
  })

  test('a publish under way when the hub closes is answered', async () => {
    const { hub } = await openHub()
    const publishing = hub.publish('a', { data: 1 })
    await hub.close()
    expect((await publishing).id).toBeTruthy()
  })

  test('a batch over the bound is rejected before anything is appended', async () => {
    const { hub, environment, connect } = await openHub()
    const reader = connect('a')
    const batch = Array.from({ length: 1001 }, () => ({ channel: 'a', data: 1 }))
    await expect(hub.publishBatch(batch)).rejects.toMatchObject({ code: 'too-large' })
    await environment.settle()
    expect(reader.data).toEqual([])
  })

  test('limits hold for readers that come together', async () => {
    const { environment, connect } = await openHub({ limits: { maxConnections: 2 } })
    const readers = [connect('a'), connect('a'), connect('a'), connect('a')]
    await environment.settle()
    expect(readers.map((reader) => reader.ended)).toEqual([false, false, true, true])
    readers[0]?.session.disconnected()
    expect(connect('a').ended).toBe(false)
  })

  test('a stream whose cursor the log cannot judge closes after ten seconds, and its reader keeps the cursor', async () => {
    const { environment, connect, hub } = await openHub({
      log: {
        name: 'mute',
        open: async (given) => {
          const log = await memoryLog().open(given)
          log.read = () => new Promise(() => {})
          return log
        },
      },
      hotBytes: 1,
    })
    const ids = await publish(hub, 'a', 1, 2)
    const reader = connect('a', { cursor: ids[0] as string })
    await environment.advance(10_001)
    expect(reader.events.map((event) => event.data)).toEqual(['{"reason":"log-unavailable"}'])
    expect(reader.lastId).toBe('')
  })

  test('a log that cannot be read ends the stream with the reason, and the cursor stays', async () => {
    const { environment, connect, hub } = await openHub({
      log: {
        name: 'broken',
        open: async (given) => {
          const log = await memoryLog().open(given)
          log.read = () => Promise.reject(new Error('disk gone'))
          return log
        },
      },
      hotBytes: 1,
    })
    const closes: unknown[] = []
    hub.on('close', ({ cause }) => closes.push(cause))
    const ids = await publish(hub, 'a', 1, 2)
    const reader = connect('a', { cursor: ids[0] as string })
    await environment.settle()
    expect(reader.events.at(-1)).toMatchObject({ type: 'close', data: '{"reason":"log-unavailable"}', id: '' })
    expect(closes).toEqual([new Error('disk gone')])
  })

  test('readers miss nothing when the tail skips events, because they read those from the log', async () => {
    let skip = false
    const { environment, connect, hub } = await openHub({
      log: {
        name: 'leaky',
        open: async (given) => {
          const log = await memoryLog().open(given)
          const tail = log.tail.bind(log)
          log.tail = (after, onBatch) =>
            tail(after, (batch) => {
              const last = batch.events.at(-1)
              if (skip && last) onBatch({ after: last.position, events: [] })
              else onBatch(batch)
            })
          return log
        },
      },
    })
    const reader = connect('a')
    await publish(hub, 'a', 1)
    await environment.settle()
    skip = true
    await publish(hub, 'a', 2, 3)
    skip = false
    await publish(hub, 'a', 4)
    await environment.settle()
    expect(reader.data).toEqual(['1', '2', '3', '4'])
  })

  test('a stream whose rights cannot be renewed closes instead of waiting for ever', async () => {
    const { hub, environment, connect } = await openHub()
    const grant = { subject: 'ada', subscribe: ['*'] }
    const reader = connect('a', { fullAfter: 150, rights: { grant, renew: () => new Promise(() => {}) } })
    await publish(hub, 'a', 1, 2)
    await environment.advance(6000)
    reader.drain()
    await environment.advance(10_001)
    expect(reader.session.mode).toBe('ended')
  })
})
