import { createHub, type Environment, systemEnvironment } from '@rejoin/hub'
import { createSubscription } from '@rejoin/hub/internal'
import type { Log } from '@rejoin/hub/log'
import { type RedisLogOptions, redisLog } from '@rejoin/hub/redis'
import { createRandom } from '@rejoin/hub/testing'
import { origin, sequence, snowflake } from '@rejoin/protocol'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { readerOf } from '../../support/every-way.ts'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { openRedisLog, operate } from './opened-log.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.remove())

test('one hub sweeps the channels that nobody publishes to, and another when that one is gone', async () => {
  const options = { prefix: 'swept', window: { maxAgeMs: 10_000 } }
  const [one, other] = [await openTimed(options), await openTimed(options)]
  await append(one.log, 'a', '1')
  expect(await operate(server.port, 'EXISTS', '{swept}:c:a')).toBe(1)
  one.pass(20_000)
  await one.sweep()
  expect(await operate(server.port, 'EXISTS', '{swept}:c:a')).toBe(0)
  const holder = await operate(server.port, 'GET', '{swept}:sweep')
  expect(Number(await operate(server.port, 'PTTL', '{swept}:sweep'))).toBeGreaterThan(0)

  await append(one.log, 'a', '2')
  other.pass(60_000)
  await other.sweep()
  expect(await operate(server.port, 'EXISTS', '{swept}:c:a')).toBe(1)
  expect(await operate(server.port, 'GET', '{swept}:sweep')).toBe(holder)
  // As when the lease has run out.
  await operate(server.port, 'DEL', '{swept}:sweep')
  await other.sweep()
  expect(await operate(server.port, 'EXISTS', '{swept}:c:a')).toBe(0)
  expect(await operate(server.port, 'GET', '{swept}:sweep')).not.toBe(holder)
})

test('the feed lets go by age, while the channels keep theirs', async () => {
  const { log, pass } = await openTimed({ prefix: 'aged', feed: { maxAgeMs: 60_000 } })
  // Redis lets go of whole nodes of a stream, of a hundred entries each.
  await append(log, 'a', ...Array.from({ length: 500 }, String))
  pass(61_000)
  await append(log, 'a', 'last')
  expect(Number(await operate(server.port, 'XLEN', '{aged}:feed'))).toBeLessThan(200)
  const { events } = await log.read(['a'], origin, await log.head(), { events: 1000, bytes: 1e9 })
  expect(events).toHaveLength(501)
})

test('what is remembered of a hub’s calls does not outlive it for long, however seldom it publishes', async () => {
  const { log } = await openTimed({ prefix: 'seldom' })
  for (const text of ['1', '2', '3']) {
    await append(log, 'a', text)
    const [key] = (await operate(server.port, 'KEYS', '{seldom}:w:*')) as string[]
    expect(Number(await operate(server.port, 'PTTL', key as string))).toBeGreaterThan(0)
    // As when it was silent for a day.
    await operate(server.port, 'DEL', key as string)
  }
})

test.each([
  ['another format', 'version', '2', /has format 2.*Use the version that made it, or choose another prefix/],
  ['other ids', 'ids', 'snowflake', /writes ids as snowflake.*open it with the codec it was made with/],
])('a log with %s is rejected, with what to do', async (_, field, value, advice) => {
  const { log } = await openTimed({ prefix: `old-${field}` })
  await append(log, 'a', '1')
  await operate(server.port, 'HSET', `{old-${field}}:log`, field, value)
  const opening = openRedisLog(server.port, { prefix: `old-${field}` })
  await expect(opening).rejects.toMatchObject({ code: 'invalid-option', message: expect.stringMatching(advice) })
})

test.each([
  ['dates', {}],
  ['numbers', { codec: sequence() }],
])(
  'a log with %s for ids whose branches were removed is opened again, and ids from before are told',
  async (name, own) => {
    const options = { prefix: `unnamed-${name}`, ...own }
    const one = await openRedisLog(server.port, options)
    const [first] = await one.publish('a', '1')
    const id = one.idOf(first!)
    await operate(server.port, 'DEL', `{unnamed-${name}}:branches`)
    const other = await openRedisLog(server.port, options)
    expect(await other.judge(id)).toBe('epoch')
    const [second] = await other.publish('a', '2')
    await one.reached(second!)
    expect([await one.judge(id), one.idOf(second!)]).toEqual(['epoch', other.idOf(second!)])
    expect(await one.judge(one.idOf(second!))).toBe('ok')
  },
)

test.each([
  ['dates', {}],
  ['numbers', { codec: sequence() }],
  ['snowflakes', { codec: snowflake() }],
])(
  'readers of a log with %s whose branches were removed while no hub ran are told epoch, and what is held is read from the start (§3.2)',
  async (name, own) => {
    const options = { prefix: `nameless-${name}`, ...own, onWarning: () => undefined }
    const open = async (seed: number) => {
      const log = redisLog(new Redis({ port: server.port, lazyConnect: true }), options)
      // Drawn anew each time, two branches would have the same snowflake tag once in a thousand.
      const hub = await createHub({ log, environment: { ...systemEnvironment, random: createRandom(seed) } })
      onTestFinished(() => hub.close())
      return hub
    }
    const before = await open(1)
    const { id } = await before.publish('a', { text: 'one' })
    await before.publish('a', { text: 'two' })
    await before.close()
    await operate(server.port, 'DEL', `{nameless-${name}}:branches`)
    const hub = await open(2)
    await hub.publish('a', { text: 'three' })
    const reader = readerOf(hub, 'a', id)
    await expect.poll(() => reader.said()).toEqual(['epoch'])
    await hub.publish('a', { text: 'four' })
    await reader.hears('four')
    const fromTheStart = { subscription: createSubscription(['a']), start: { from: 'earliest' as const } }
    const polled = await hub.port.poll(fromTheStart, { waitMs: 0 })
    const events = 'events' in polled ? polled.events : []
    expect(events.filter(({ type }) => type === 'message').map(({ data }) => data)).toEqual([
      ...['one', 'two', 'three', 'four'],
    ])
  },
)

test('a Redis that evicts from now on takes no events, says why, and takes them again when it does not', async () => {
  const hub = await openRedisLog(server.port, { prefix: 'evicting' })
  await hub.publish('a', '1')
  await operate(server.port, 'CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
  onTestFinished(() => operate(server.port, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction').then(() => undefined))
  // Then the hub connects anew, and looks.
  await operate(server.port, 'CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  await expect(hub.publish('a', '2')).rejects.toMatchObject({
    code: 'log-unavailable',
    message: expect.stringContaining('CONFIG SET maxmemory-policy noeviction'),
  })
  await operate(server.port, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
  const [place] = await hub.publish('a', '3')
  await hub.reached(place!)
  expect(hub.events().map(({ data }) => data)).toEqual(['1', '3'])
})

/** A log whose time passes as told, and whose sweep begins its round when told to. */
async function openTimed(options: RedisLogOptions) {
  let passed = 0
  let round: (() => void) | undefined
  let over: () => void = () => undefined
  const environment: Environment = {
    ...systemEnvironment,
    now: () => Date.now() + passed,
    after(_, task) {
      round = task
      over()
      return () => undefined
    },
  }
  const client = new Redis({ port: server.port, lazyConnect: true })
  const log = await redisLog(client, { clock: 'hub', onWarning: () => undefined, ...options }).open(environment)
  onTestFinished(() => log.close())
  return {
    log,
    pass(ms: number) {
      passed += ms
    },
    sweep: () =>
      new Promise<void>((resolve) => {
        over = resolve
        round?.()
      }),
  }
}

async function append(log: Log, channel: string, ...texts: string[]): Promise<void> {
  const entries = texts.map((data) => ({ channel, type: 'message', data }))
  await log.append(entries, { token: `${channel} ${texts[0]} ${Math.random()}` })
}
