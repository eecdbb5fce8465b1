import { createHub } from '@rejoin/hub'
import { createSubscription } from '@rejoin/hub/internal'
import { redisLog } from '@rejoin/hub/redis'
import { logContract } from '@rejoin/hub/testing'
import { hlc, sequence, snowflake, ulid, uuidv7 } from '@rejoin/protocol'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { openRedisLog } from './opened-log.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.remove())

const prefixOf = (client: string, location: string) => `${client}-${location}`.replaceAll(/[^\w.]+/g, '-')

const clients = {
  ioredis: () => new Redis({ port: server.port, lazyConnect: true }),
  redis: () => createClient({ socket: { port: server.port } }),
}

describe.each(Object.entries(clients))('redis log, with a client of %s', (name, client) => {
  logContract({
    test,
    source: ({ location, ...options }) => ({
      name: 'redis',
      open: (environment) =>
        redisLog(client(), { prefix: prefixOf(name, location), clock: 'hub', ...options }).open(environment),
    }),
    async rollBack(location) {
      const keys = `{${prefixOf(name, location)}}:*`
      const raw = new Redis({ port: server.port, lazyConnect: true })
      const before = new Map<string, Buffer>()
      for (const key of await raw.keys(keys)) before.set(key, (await raw.dumpBuffer(key)) as Buffer)
      return async () => {
        const putBack = raw.multi()
        for (const key of await raw.keys(keys)) putBack.del(key)
        for (const [key, value] of before) putBack.restore(key, 0, value)
        await putBack.exec()
        raw.disconnect()
        return undefined
      }
    },
    differs: [
      {
        reason: 'a restart of the hub loses nothing, so there is nothing to tell apart',
        tests: ['an id from before everything was lost is told from one of today'],
      },
      {
        reason: 'its feed holds more than the windows do, for as long as it is told to',
        tests: ['a tail that can no longer start where it was asked to says from where it goes on'],
      },
      {
        reason: 'Redis expires texts by its own clock, not by that of the hub',
        tests: ['a text goes when its time has passed, and one without a time stays'],
      },
    ],
  })
})

test('channels of the redis log have the window of the narrowest name over them, and the log’s for what it leaves out', async () => {
  const { log, publish } = await openRedisLog(server.port, {
    prefix: 'windows',
    window: { maxEvents: 6 },
    windows: {
      'prices/*': { maxEvents: 2, maxAgeMs: 60_000 },
      'prices/fx/*': { maxEvents: 3 },
      'prices/fx/eur': { maxEvents: 4 },
      "it's/*": { maxBytes: 400 },
    },
  })
  const channels = ['prices/x', 'prices/fx/usd', 'prices/fx/eur', 'orders', "it's/here"]
  for (const channel of channels) await publish(channel, ...Array.from({ length: 8 }, () => 'x'.repeat(100)))
  const counts = (await log.windows(channels)).map(({ events }) => events)
  expect(counts).toEqual([2, 3, 4, 6, expect.any(Number)])
  expect(counts[4]).toBeLessThan(6)
})

test('a text that hubs agree on goes when its time has passed, and one without a time stays', async () => {
  const { log } = await openRedisLog(server.port, { prefix: 'texts' })
  await log.putIfAbsent?.('lasting', 'first')
  await log.putIfAbsent?.('short', 'first', 50)
  await expect.poll(() => log.putIfAbsent?.('short', 'second', 60_000)).toBe('second')
  expect(await log.putIfAbsent?.('lasting', 'second')).toBe('first')
})

test('hubs on one log find each other’s notes, the last of each, until it has not been renewed', async () => {
  const clock = { prefix: 'notes', clock: 'hub' } as const
  const [one, other] = [await openRedisLog(server.port, clock), await openRedisLog(server.port, clock)]
  expect(await one.log.meet?.('one: 1', 60_000)).toEqual(['one: 1'])
  expect(await other.log.meet?.('other: 1\nwith a second line', 60_000)).toHaveLength(2)
  expect((await one.log.meet?.('one: 2', 1))?.toSorted()).toEqual(['one: 2', 'other: 1\nwith a second line'])
  await expect.poll(() => other.log.meet?.('other: 2', 60_000)).toEqual(['other: 2'])
})

test.each([ulid(), uuidv7(), snowflake(), hlc({ node: 'one' }), sequence()])(
  'a reader that starts at the beginning of a new log with $name ids gets all events, and no alarm (§3.4)',
  async (codec) => {
    const log = redisLog(clients.ioredis(), { prefix: `new-${codec.name}`, codec })
    const hub = await createHub({ log })
    onTestFinished(() => hub.close())
    for (const text of ['1', '2']) await hub.publish('a', { text })
    for (const selector of ['a', '*', 'never used']) {
      const request = { subscription: createSubscription([selector]), start: { from: 'earliest' as const } }
      const answer = await hub.port.poll(request, { waitMs: 0 })
      if (!('events' in answer)) throw new Error(answer.reason)
      const told = answer.events.map(({ type, data }) => (type === 'message' ? data : type))
      const events = selector === 'never used' ? [] : ['1', '2']
      expect(told.filter((each) => each !== 'checkpoint')).toEqual(['hello', ...events])
    }
  },
)
