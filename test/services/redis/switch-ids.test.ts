import { createHub, type Hub } from '@rejoin/hub'
import { type RedisLogOptions, redisLog } from '@rejoin/hub/redis'
import { sequence, snowflake, ulid, uuidv7 } from '@rejoin/protocol'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { resumeFromEach, switchUnderLoad } from '../../support/switched-ids.ts'
import { openRedisLog, operate } from './opened-log.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis({ settings: { appendonly: 'yes', appendfsync: 'always' } })
})
afterAll(() => server.remove())

async function openHub(options: RedisLogOptions): Promise<Hub> {
  const client = new Redis({ port: server.port, lazyConnect: true })
  const log = redisLog(client, { onWarning: () => undefined, window: { maxEvents: 100_000 }, ...options })
  const hub = await createHub({ log })
  onTestFinished(() => hub.close())
  return hub
}

test.each([
  ['ulid to a version of uuidv7', {}, { codec: uuidv7(), version: 2 }, /^v2_[0-9a-f-]{36}$/],
  ['uuidv7 to snowflakes', { codec: uuidv7() }, { codec: snowflake() }, /^\d+$/],
  ['numbers to numbers with a version', { codec: sequence() }, { codec: sequence(), version: 9 }, /^v9_evt-\d+-\w+$/],
])(
  'all hubs of a log switch from %s at the same event, under load, and nobody is alarmed',
  async (name, own, format, looks) => {
    const prefix = `switch-${name.replaceAll(' ', '-')}`
    const hubs = [
      await openHub({ prefix, ...own }),
      await openHub({ prefix, ...own }),
      await openHub({ prefix, ...own }),
    ]
    const ids = await switchUnderLoad(hubs, format)
    const first = ids.findIndex((id) => looks.test(id))
    expect(first).toBeGreaterThan(100)
    expect(ids.slice(first).filter((id) => !looks.test(id))).toEqual([])
    expect(ids.slice(0, first).filter((id) => looks.test(id))).toEqual([])
    // A hub that starts later knows it from the log, whichever of the two codecs it names.
    hubs.push(await openHub({ prefix, ...own }), await openHub({ prefix, codec: format.codec }))
    await resumeFromEach(hubs, ids, Math.ceil(ids.length / 10))
  },
)

test('of two hubs that switch at once, both are told, and all hubs agree', async () => {
  const prefix = 'two-at-once'
  const hubs = [await openHub({ prefix }), await openHub({ prefix })]
  await Promise.all(hubs.map((hub, number) => hub.log.switchIds?.({ codec: uuidv7(), version: 2 + number })))
  const { id } = await (hubs[0] as Hub).publish('a', { text: 'x' })
  expect((await (hubs[1] as Hub).publish('a', { text: 'y' })).id.slice(0, 3)).toBe(id.slice(0, 3))
  const lists = hubs.map(({ log }) => log.formats.list.map(({ version, since }) => ({ version, since })))
  expect(lists[1]).toEqual(lists[0])
})

test('a publish that is repeated after a switch stands where it stood before', async () => {
  const { log } = await openRedisLog(server.port, { prefix: 'repeated-over' })
  // More of a millisecond than a snowflake has room for.
  const entries = Array.from({ length: 5000 }, (_, index) => ({ channel: 'a', type: 'message', data: `${index}` }))
  const once = { scope: 'me', key: 'k', hash: 'h' }
  const before = await log.append(entries, { token: '1', once })
  await log.switchIds?.({ codec: snowflake() })
  expect(await log.append(entries, { token: '2', once })).toEqual({ stamps: before.stamps, repeated: true })
})

test('a Redis that is restarted, or emptied, goes on with the ids it was switched to', async () => {
  const prefix = 'restarted-ids'
  const one = await openRedisLog(server.port, { prefix })
  const [early] = await one.publish('a', '1')
  await one.log.switchIds?.({ codec: uuidv7(), version: 2 })
  const [late] = await one.publish('a', '2')
  const ids = [one.idOf(early!), one.idOf(late!)]
  await server.kill()
  await server.start()
  const other = await openRedisLog(server.port, { prefix })
  expect([other.idOf(early!), other.idOf(late!)]).toEqual(ids)
  expect(await Promise.all(ids.map(other.judge))).toEqual(['ok', 'ok'])
  await operate(server.port, 'FLUSHALL')
  const [anew] = await other.publish('a', '3')
  expect(other.idOf(anew!)).toMatch(/^v2_/)
  expect(await Promise.all(ids.map(other.judge))).toEqual(['epoch', 'epoch'])
})

test('a log that counts is opened with its codec, and the advice says so', async () => {
  const prefix = 'counting'
  await openRedisLog(server.port, { prefix, codec: sequence() })
  const rejected = { code: 'invalid-option', message: expect.stringContaining('Open it with the codec sequence()') }
  await expect(openRedisLog(server.port, { prefix })).rejects.toMatchObject(rejected)
  await expect(openRedisLog(server.port, { prefix, codec: ulid() })).rejects.toMatchObject({
    message: expect.stringContaining('open it with the codec it was made with'),
  })
})
