import { createHub, systemEnvironment } from '@rejoin/hub'
import { createSubscription } from '@rejoin/hub/internal'
import { redisLog } from '@rejoin/hub/redis'
import { isAfter, origin, sequence, snowflake, survivorOf, ulid } from '@rejoin/protocol'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { type Heard, readerOf } from '../../support/every-way.ts'
import { replicated } from '../../support/redis-server.ts'
import { type OpenedLog, offsetOf, openRedisLog, operate } from './opened-log.ts'
import { between, eventually, redis } from './servers.ts'

test('a publish fails at once while Redis is away, and goes through when it is back, without anybody doing anything', async () => {
  const server = await redis(flushing)
  const hub = await openRedisLog(server.port)
  const [before] = await hub.publish('a', '1')
  await server.kill()
  const began = performance.now()
  await expect(hub.publish('a', 'lost')).rejects.toMatchObject({ code: 'log-unavailable', retryable: true })
  expect(performance.now() - began).toBeLessThan(3000)
  await server.start()
  await eventually(() => hub.publish('a', '2'))
  expect((await hub.read(['a'], hub.start)).data).toEqual(['1', '2'])
  expect(await hub.judge(hub.idOf(before!))).toBe('ok')
  await hub.reached(await hub.log.head())
  expect(hub.events().map(({ data }) => data)).toEqual(['1', '2'])
  expect(hub.log.history).toHaveLength(2)
})

test('a Redis that stands still fails publishes in time, and keeps each at most once', async () => {
  const server = await redis()
  const hub = await openRedisLog(server.port, { answerWithinMs: 500 })
  await hub.publish('a', '1')
  server.pause()
  await expect(hub.publish('a', 'maybe')).rejects.toMatchObject({ code: 'log-unavailable', retryable: true })
  server.resume()
  await eventually(() => hub.publish('a', '2'))
  const { data } = await hub.read(['a'], hub.start)
  expect(data.filter((text) => text !== 'maybe')).toEqual(['1', '2'])
  expect(data.filter((text) => text === 'maybe').length).toBeLessThan(2)
  expect(hub.log.history).toHaveLength(1)
})

test('an answer that gets lost on the way does not make two events of one', async () => {
  const server = await redis()
  const proxy = await between(server)
  const hub = await openRedisLog(proxy.port)
  for (let count = 0; count < 20; count += 1) {
    for (const link of proxy.links) void link.cutAt(link.passed.down + 1, 'reset')
    await hub.publish('a', `${count}`)
  }
  await hub.reached(await hub.log.head())
  const everything = Array.from({ length: 20 }, (_, count) => `${count}`)
  expect((await hub.read(['a'], hub.start)).data).toEqual(everything)
  expect(hub.events().map(({ data }) => data)).toEqual(everything)
})

test('a tail whose connection dies in silence goes on over another one, from the same position', async () => {
  const server = await redis()
  const proxy = await between(server)
  const [cut, other] = [await openRedisLog(proxy.port), await openRedisLog(server.port)]
  const [first] = await other.publish('a', '1')
  await cut.reached(first!)
  proxy.cutAll('half-open')
  const cutAt = performance.now()
  const [second] = await other.publish('a', '2')
  await cut.reached(second!)
  expect(cut.log.tailSilenceMs?.()).toBeLessThan(performance.now() - cutAt)
  expect(cut.events().map(({ data }) => data)).toEqual(['1', '2'])
  expect(cut.batches.map(({ after }) => after)).toEqual([cut.start, first])
})

test('a Redis whose scripts were flushed gets them again', async () => {
  const server = await redis()
  const hub = await openRedisLog(server.port)
  await hub.publish('a', '1')
  await operate(server.port, 'SCRIPT', 'FLUSH')
  await hub.publish('a', '2')
  expect((await hub.read(['a'], hub.start)).data).toEqual(['1', '2'])
  expect(hub.log.history).toHaveLength(1)
})

test.each(['FLUSHALL', 'an empty restart'])('after %s, ids from before are told from those of today', async (how) => {
  const server = await redis()
  const [one, other] = [await openRedisLog(server.port), await openRedisLog(server.port)]
  const [lost] = await one.publish('a', '1', '2')
  await other.reached(lost!)
  const id = one.idOf(lost!)
  if (how === 'FLUSHALL') {
    await operate(server.port, 'FLUSHALL')
  } else {
    await server.kill()
    server.empty()
    await server.start()
  }
  // Nobody publishes, and still all tails learn of it.
  const isOver = (hub: OpenedLog) => hub.applied(() => hub.log.history.length > 1)
  await Promise.all([isOver(one), isOver(other)])
  expect([await one.judge(id), await other.judge(id)]).toEqual(['epoch', 'epoch'])
  const [next] = await eventually(() => one.publish('a', '3'))
  expect(isAfter(next!, lost!)).toBe(true)
  await other.reached(next!)
  expect(other.idOf(next!)).toBe(one.idOf(next!))
  const late = await openRedisLog(server.port)
  expect([await late.judge(id), await late.judge(one.idOf(next!))]).toEqual(['epoch', 'ok'])
  expect((await late.read(['a'], origin)).data).toEqual(['3'])
})

test('after FLUSHALL, a reader that asks for the last events gets those that there are, and no alarm (§3.4)', async () => {
  const server = await redis()
  const hub = await createHub({ log: redisLog(new Redis({ port: server.port, lazyConnect: true })) })
  onTestFinished(() => hub.close())
  await hub.publish('a', { text: 'gone' })
  await operate(server.port, 'FLUSHALL')
  await eventually(() => hub.publish('other', { text: 'found back' }))
  await hub.publish('a', { text: 'new 1' })
  await hub.publish('a', { text: 'new 2' })
  const last = async (channel: string, events: number) => {
    const request = { subscription: createSubscription([channel]), start: { from: 'last' as const, events } }
    const answer = await hub.port.poll(request, { waitMs: 0 })
    if (!('events' in answer)) throw new Error(answer.reason)
    const { replay } = JSON.parse(answer.events[0]?.data ?? '{}') as { replay?: number }
    return [replay, ...answer.events.slice(1).map(({ type, data }) => (type === 'message' ? data : type))]
  }
  expect(await last('a', 9)).toEqual([2, 'new 1', 'new 2'])
  expect(await last('never used', 9)).toEqual([0, 'checkpoint'])
})

test.each([
  ['numbers that only count', { codec: sequence() }, 0],
  ['a clock that stands still', { clock: 'hub' }, 0],
  ['a clock that was set back', { clock: 'hub' }, -60_000],
] as const)(
  'after FLUSHALL with %s, also a hub that had seen more than the one that noticed it tells its readers',
  async (_, options, stepMs) => {
    const server = await redis()
    const ahead = await openRedisLog(server.port, options)
    let stoppedAt: number | undefined
    // Without a tail: it knows what it was told when it opened the log.
    const client = new Redis({ port: server.port, lazyConnect: true })
    const behind = await redisLog(client, options).open({ ...systemEnvironment, now: () => stoppedAt ?? Date.now() })
    onTestFinished(() => behind.close())
    const [seen] = (await ahead.publish('a', ...Array.from({ length: 10 }, String))).slice(-1)
    await ahead.reached(seen!)
    const branch = ahead.log.history.at(-1)!
    stoppedAt = seen!.ms + stepMs
    await operate(server.port, 'FLUSHALL')
    const texts = Array.from({ length: 50 }, (_, count) => `later ${count}`)
    const entries = texts.map((data) => ({ channel: 'a', type: 'message', data }))
    const { stamps } = await behind.append(entries, { token: 'later' })
    await ahead.reached(stamps.at(-1)!.position)
    expect(survivorOf(ahead.log.history, { branch, position: seen! })).toBeUndefined()
    expect(isAfter(stamps[0]!.position, seen!)).toBe(true)
    expect(
      ahead
        .events()
        .slice(-50)
        .map(({ data }) => data),
    ).toEqual(texts)
  },
)

test('a replica promoted without the newest events opens a branch: readers that saw them are told, all others go on', async () => {
  const master = await redis({ settings: { 'repl-diskless-sync-delay': 0 } })
  const replication = await between(master)
  const replica = await redis({ settings: { replicaof: `127.0.0.1 ${replication.port}` } })
  const proxy = await between(master)
  // A master names its lineage anew when its first replica comes.
  await replicated(master)
  const hub = await openRedisLog(proxy.port)
  const [kept] = await hub.publish('a', 'kept')
  await replicated(master)
  // Not by stopping the replica: it would find what was sent to it when it goes on.
  replication.reject('silence')
  replication.cutAll('half-open')
  const [lost] = await hub.publish('a', 'lost')
  await hub.reached(lost!)
  const [keptId, lostId] = [hub.idOf(kept!), hub.idOf(lost!)]

  await master.kill()
  await operate(replica.port, 'REPLICAOF', 'NO', 'ONE')
  proxy.target.port = replica.port
  proxy.cutAll('reset')
  const [next] = await eventually(() => hub.publish('a', 'next'))
  await hub.reached(next!)
  expect(await Promise.all([keptId, lostId, hub.idOf(next!)].map((id) => hub.judge(id)))).toEqual(['ok', 'epoch', 'ok'])
  const [before, opened] = hub.log.history
  expect(opened).toMatchObject({ fork: kept })
  expect(opened!.number).toBeGreaterThan(before!.number)
  expect(hub.log.history).toHaveLength(2)
  expect((await hub.read(['a'], kept!)).gap).toMatchObject({ channels: ['a'], reason: 'epoch' })
  expect((await hub.read(['b'], kept!)).gap).toBeUndefined()
  expect((await hub.read(['a'], hub.log.history.at(-1)!.first)).data).toEqual(['next'])
  expect(hub.batches.at(-1)?.after).toEqual(hub.log.history.at(-1)?.first)
})

test('a power cut loses the last second of a Redis that flushes every second: readers that saw it are told, and no id is used again', async () => {
  const server = await redis({ settings: { appendfsync: 'everysec' } })
  const [one, other] = [await openRedisLog(server.port), await openRedisLog(server.port)]
  const given: string[] = []
  for (let round = 1; round <= 3; round += 1) {
    const [kept] = await eventually(() => one.publish('a', `kept ${round}`))
    await eventually(async () => expect(server.written()).toBe(await offsetOf(server.port)))
    const bytes = server.written()
    const lost = await one.publish('a', 'lost', 'lost too')
    await Promise.all([one.reached(lost[1]!), other.reached(lost[1]!)])
    const [keptId, ...lostIds] = [kept!, ...lost].map((position) => one.idOf(position)) as [string, ...string[]]
    await server.kill()
    server.cutTo(bytes)
    await server.start()
    const [next] = await eventually(() => other.publish('a', `next ${round}`))
    await Promise.all([one.reached(next!), other.reached(next!)])
    const nextId = other.idOf(next!)
    for (const hub of [one, other]) {
      const verdicts = await Promise.all([keptId, ...lostIds, nextId].map((id) => hub.judge(id)))
      expect(verdicts).toEqual(['ok', 'epoch', 'epoch', 'ok'])
      expect(hub.log.history).toHaveLength(round + 1)
      expect(hub.log.history.at(-1)).toMatchObject({ fork: kept })
    }
    expect(isAfter(next!, lost[1]!)).toBe(true)
    given.push(keptId, ...lostIds, nextId)
  }
  expect(new Set(given).size).toBe(given.length)
  // Who was away misses the lost ones as well, and is told; who reads something else is not.
  const survivors: string[] = []
  const head = await one.log.head()
  for (let after = one.start; isAfter(head, after); ) {
    const page = await one.log.read(['a'], after, head, { events: 1000, bytes: 1e9 })
    survivors.push(...page.events.map(({ data }) => data), ...(page.gap ? [page.gap.reason] : []))
    after = page.gap?.wholeAfter ?? page.completeThrough
  }
  expect(survivors).toEqual([1, 2, 3].flatMap((round) => [`kept ${round}`, 'epoch', `next ${round}`]))
  expect((await one.read(['a'], one.log.history.at(-1)!.first)).data).toEqual(['next 3'])
  expect((await one.read(['b'], one.start)).gap).toBeUndefined()
})

test('an older log that is put back under the running Redis is noticed by a hub that saw more of it', async () => {
  const server = await redis()
  const hub = await openRedisLog(server.port)
  await hub.publish('a', '1')
  const keys = (await operate(server.port, 'KEYS', '*')) as string[]
  const copy = await Promise.all(keys.map((key) => operate(server.port, 'COPY', key, key, 'DB', '1')))
  expect(copy.every((done) => done === 1)).toBe(true)
  const [lost] = await hub.publish('a', '2')
  await hub.reached(lost!)
  const id = hub.idOf(lost!)
  await operate(server.port, 'SWAPDB', '0', '1')
  const [next] = await hub.publish('a', '3')
  await hub.reached(next!)
  expect(isAfter(next!, lost!)).toBe(true)
  expect(await hub.judge(id)).toBe('epoch')
})

test('an event that another one names as the event before it, and that is gone, is a gap there and not before', async () => {
  const server = await redis()
  const hub = await openRedisLog(server.port)
  const [first, second, third] = await hub.publish('a', '1', '2', '3')
  await operate(server.port, 'XDEL', '{rejoin}:c:a', `${second!.ms}-${second!.seq}`)
  expect((await hub.read(['a'], hub.start)).data).toEqual(['1'])
  expect((await hub.read(['a'], first!)).gap).toMatchObject({ channels: ['a'], wholeAfter: second })
  expect((await hub.read(['a'], second!)).data).toEqual(['3'])
  expect((await hub.read(['a'], third!)).gap).toBeUndefined()
})

test('events that are gone from several channels are one gap, up to where all of them are whole', async () => {
  const server = await redis()
  const hub = await openRedisLog(server.port)
  const [, second, , fourth] = await hub.publish('a', '1', '2', '3', '4', '5')
  const [sixth, , eighth] = await hub.publish('b', '6', '7', '8')
  for (const { ms, seq } of [second!, fourth!]) await operate(server.port, 'XDEL', '{rejoin}:c:a', `${ms}-${seq}`)
  const first = (await hub.log.windows(['a']))[0]!.oldest!
  const whole = { channels: ['a'], reason: 'expired', wholeAfter: fourth }
  expect((await hub.read(['b', 'a'], first)).gap).toEqual(whole)
  expect((await hub.read(['b', 'a'], fourth!)).data).toEqual(['5', '6', '7', '8'])
  await operate(server.port, 'XTRIM', '{rejoin}:c:b', 'MAXLEN', '1')
  expect((await hub.read(['b', 'a'], first)).gap).toMatchObject({ channels: ['b', 'a'], reason: 'expired' })
  expect((await hub.read(['b', 'a'], sixth!)).gap).toMatchObject({ channels: ['b'] })
  expect((await hub.read(['b', 'a'], eighth!)).gap).toBeUndefined()
})

test('a tail that was behind when the feed was removed is told where it goes on, and patterns miss nothing', async () => {
  const server = await redis()
  const hub = await openRedisLog(server.port)
  const [first, second] = await hub.publish('a/1', '1', '2')
  await operate(server.port, 'DEL', '{rejoin}:feed')
  expect((await hub.read(['a/*'], first!)).data).toEqual(['2'])
  const [third] = await hub.publish('a/2', '3')
  expect((await hub.read(['a/*'], first!)).data).toEqual(['2', '3'])
  const batches: unknown[] = []
  await new Promise<void>((resolve) => {
    void hub.log.tail(first!, (batch) => {
      batches.push([batch.after, batch.events.map(({ data }) => data)])
      if (batch.events.length > 0) resolve()
    })
  })
  expect(batches).toEqual([[second, ['3']]])
  await hub.reached(third!)
  expect(hub.events().map(({ data }) => data)).toEqual(['1', '2', '3'])
})

test('a feed lets go by bytes; a tail from before says from where it goes on, and patterns are read from the channels', async () => {
  const server = await redis()
  const hub = await openRedisLog(server.port, { feed: { maxBytes: 20_000 } })
  const texts = Array.from({ length: 400 }, (_, count) => `${count} ${'x'.repeat(200)}`)
  for (const text of texts) await hub.publish(`a/${text.length}`, text)
  expect(Number(await operate(server.port, 'XLEN', '{rejoin}:feed'))).toBeLessThan(200)
  await hub.reached(await hub.log.head())
  expect(hub.events().map(({ data }) => data)).toEqual(texts)
  expect((await hub.read(['a/*'], hub.start)).data).toEqual(texts)
  const after = await new Promise((resolve) => {
    void hub.log.tail(hub.start, (batch) => resolve(batch.after))
  })
  expect(isAfter(after as typeof hub.start, hub.start)).toBe(true)
})

test('hubs that all fall out of the feed at once open no branch: readers go on, and are told only of what their window lost (§2.3)', async () => {
  const server = await redis()
  const options = { feed: { maxBytes: 20_000 }, windows: { narrow: { maxEvents: 10 } }, onWarning: () => undefined }
  const publisher = await openRedisLog(server.port, options)
  const hubs = await Promise.all(
    [1, 2].map(() => createHub({ log: redisLog(new Redis({ port: server.port, lazyConnect: true }), options) })),
  )
  for (const hub of hubs) onTestFinished(() => hub.close())
  const wide = hubs.map((hub) => readerOf(hub, 'wide'))
  const narrow = hubs.map((hub) => readerOf(hub, 'narrow'))
  const readers = [...wide, ...narrow]
  const published: string[] = []
  const publish = async (...texts: string[]) => {
    for (const channel of ['wide', 'narrow']) await publisher.publish(channel, ...texts)
    published.push(...texts)
  }
  await publish('begun')
  await Promise.all(readers.map((reader) => reader.hears('begun')))
  for (let round = 1; round <= 3; round += 1) {
    // In one call, and more than the feed keeps: no tail can have met the first of them.
    await publish(...Array.from({ length: 300 }, (_, count) => `${round}-${count} ${'x'.repeat(200)}`))
    const gapsOf = (reader: Heard) => reader.said().filter((each) => each === 'expired').length
    // What is published before a reader is told is covered by that.
    for (const reader of narrow) await expect.poll(() => gapsOf(reader)).toBe(round)
    await publish(`end of ${round}`)
    await Promise.all(readers.map((reader) => reader.hears(`end of ${round}`)))
  }
  await publisher.reached(await publisher.log.head())
  expect(publisher.events().length).toBeLessThan(2 * published.length)
  expect(await operate(server.port, 'LLEN', '{rejoin}:branches')).toBe(1)
  for (const reader of wide) expect(reader.said()).toEqual(published)
  for (const reader of narrow) {
    expect(reader.said().filter((each) => each === 'expired')).toHaveLength(3)
    let at = -1
    let isTold = false
    for (const text of reader.said()) {
      if (text !== 'expired') {
        const next = published.indexOf(text)
        expect(next === at + 1 || (isTold && next > at)).toBe(true)
        at = next
      }
      isTold = text === 'expired'
    }
  }
})

test.each([
  ['sequence', sequence()],
  ['snowflake', snowflake()],
])('%s ids go on over a restart of Redis', async (_, codec) => {
  const server = await redis(flushing)
  const hub = await openRedisLog(server.port, { codec })
  const [first] = await hub.publish('a', '1', '2')
  const id = hub.idOf(first!)
  await server.kill()
  await server.start()
  const [third] = await eventually(() => hub.publish('a', '3'))
  await hub.reached(third!)
  expect(await hub.judge(id)).toBe('ok')
  expect(hub.idOf(third!)).not.toBe(id)
  expect((await hub.read(['a'], first!)).data).toEqual(['2', '3'])
  await expect(openRedisLog(server.port, { codec: ulid() })).rejects.toMatchObject({ code: 'invalid-option' })
})

test('a Redis that evicts is rejected, and one without an append-only file is warned of', async () => {
  const evicting = await redis({ settings: { 'maxmemory-policy': 'allkeys-lru' } })
  await expect(openRedisLog(evicting.port)).rejects.toThrow(/CONFIG SET maxmemory-policy noeviction/)
  const forgetful = await redis({ settings: { appendonly: 'no' } })
  const warnings: string[] = []
  const { log } = await openRedisLog(forgetful.port, { onWarning: (message) => void warnings.push(message) })
  expect(warnings).toEqual([expect.stringContaining('appendonly yes')])
  expect(log.durability).toBe('memory')
  await evicting.remove()
})

test.each([
  ['always', 'disk'],
  ['no', 'os'],
  ['everysec', 'memory'],
])(
  'with appendfsync %s an answered publish is called as safe as a crash of Redis leaves it: %s',
  async (appendfsync, durability) => {
    const server = await redis({ settings: { appendfsync } })
    const { log } = await openRedisLog(server.port)
    expect(log.durability).toBe(durability)
  },
)

test('a full Redis rejects events, serves readers, and takes events again when there is room', async () => {
  const server = await redis()
  const hub = await openRedisLog(server.port)
  await hub.publish('a', '1')
  await operate(server.port, 'CONFIG', 'SET', 'maxmemory', '1mb')
  await expect(hub.publish('a', 'too much')).rejects.toMatchObject({ code: 'log-unavailable', retryable: true })
  await operate(server.port, 'CONFIG', 'SET', 'maxmemory', '0')
  await hub.publish('a', '2')
  expect((await hub.read(['a'], hub.start)).data).toEqual(['1', '2'])
})

/** Every second, what was answered while a flush is under way is in Redis alone, and a kill takes it. */
const flushing = { settings: { appendfsync: 'always' } }
