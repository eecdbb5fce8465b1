import { systemEnvironment } from '@rejoin/hub'
import type { Log } from '@rejoin/hub/log'
import { type RedisLogOptions, redisLog } from '@rejoin/hub/redis'
import { createRandom } from '@rejoin/hub/testing'
import { judgeCursor, type Position, renderId, sequence } from '@rejoin/protocol'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { operate } from './opened-log.ts'
import { eventually } from './servers.ts'

// A hub that is deployed every day stops and starts thousands of times. The branches of its log stay few, and what the log tells
// a reader is what it would tell with a branch for each start (§2.3).

let server: RedisServer
beforeAll(async () => {
  server = await startRedis({ settings: { databases: 40 } })
})
afterAll(() => server.remove())

test('a hub that stops and starts 1,500 times leaves one branch, and the id of each start is good to the end', async () => {
  const ids: string[] = []
  for (let start = 0; start < 1500; start += 1) {
    const log = await open('daily')
    if (start % 3 > 0) await publish(log, String(start))
    ids.push(renderId(await log.head(), log))
    await log.close()
  }
  const log = await open('daily')
  expect(log.history).toHaveLength(1)
  expect(new Set(await verdictsOn(log, ids))).toEqual(new Set(['ok']))
  await log.close()
}, 120_000)

test('a hub that stops beside another one proves nothing: a copy from then that is put back tells readers that saw more', async () => {
  const [one, other] = [await open('beside', 38), await open('beside', 38)]
  const kept = renderId(await publish(one, 'kept'), one)
  await one.close()
  await copyTo(38, 39)
  const lost = renderId(await publish(other, 'lost'), other)
  await other.close()
  await noHubs()
  await operate(server.port, 'SWAPDB', '38', '39')
  expect(await verdictsOn(await open('beside', 38), [kept, lost])).toEqual(['ok', 'epoch'])
})

// What became of each event is kept beside the log.
test.each(Array.from({ length: 16 }, (_, seed) => [seed + 1, seed % 4 === 3 ? 'numbers' : 'dates'] as const))(
  'whatever hubs and operators do, ids of surviving events are good and ids of lost events are not (seed %i, %s)',
  async (seed, ids) => {
    const random = createRandom(seed)
    const below = (count: number) => Math.floor(random() * count)
    const db = 2 * seed
    const options = ids === 'numbers' ? { codec: sequence() } : {}
    let hubs: Log[] = []
    let events: { id: string; text: string; at: Position }[] = []
    let copy: typeof events | undefined
    const lost: typeof events = []
    let starts = 0
    for (let step = 0; step < 60; step += 1) {
      const hub = hubs[below(hubs.length)]
      const dice = below(10)
      if (!hub || dice === 0) {
        hubs.push(await open('random', db, options))
        starts += 1
      } else if (dice < 4) {
        const text = String(step)
        const at = await publish(hub, text)
        events = [...events, { id: renderId(at, hub), text, at }]
      } else if (dice < 7) {
        await hub.close()
        hubs = hubs.filter((other) => other !== hub)
      } else if (dice === 7) {
        for (const each of hubs) await each.close()
        hubs = []
        await killed()
      } else if (dice === 8) {
        await copyTo(db, db + 1)
        copy = events
      } else if (copy) {
        for (const each of hubs) await each.close()
        hubs = []
        await noHubs()
        await operate(server.port, 'SWAPDB', String(db), String(db + 1))
        const kept = new Set(copy)
        lost.push(...events.filter((event) => !kept.has(event)))
        events = copy
        copy = undefined
      }
    }
    const hub = hubs[0] ?? (await open('random', db, options))
    expect(
      await verdictsOn(
        hub,
        events.map(({ id }) => id),
      ),
    ).toEqual(events.map(() => 'ok'))
    const known = new Set(events)
    const never = lost.filter((event) => !known.has(event))
    expect(
      await verdictsOn(
        hub,
        never.map(({ id }) => id),
      ),
    ).toEqual(never.map(() => 'epoch'))
    const head = await hub.head()
    for (const [index, { at }] of events.entries()) {
      const page = await hub.read(['a'], at, head, { events: 1000, bytes: 1e9 })
      expect([page.gap, page.events.map(({ data }) => data)]).toEqual([
        undefined,
        events.slice(index + 1).map(({ text }) => text),
      ])
    }
    expect(hub.history.length).toBeLessThanOrEqual(starts)
    for (const each of new Set([...hubs, hub])) await each.close()
  },
)

async function open(prefix: string, db = 0, options: RedisLogOptions = {}): Promise<Log> {
  const client = new Redis({ port: server.port, db, lazyConnect: true })
  const log = await redisLog(client, { prefix, onWarning: () => undefined, ...options }).open(systemEnvironment)
  onTestFinished(() => log.close())
  return log
}

async function publish(log: Log, data: string): Promise<Position> {
  const { stamps } = await log.append([{ channel: 'a', type: 'message', data }], { token: `${data} ${Math.random()}` })
  return stamps[0]!.position
}

async function verdictsOn(log: Log, ids: readonly string[]): Promise<string[]> {
  const head = await log.head()
  return ids.map((id) => {
    const verdict = judgeCursor(id, { formats: log.formats, history: log.history, head })
    return verdict.ok ? 'ok' : verdict.reason
  })
}

/** What a hub that stopped has left behind in Redis is gone, as if it had been killed. */
async function killed(): Promise<void> {
  await noHubs()
  await operate(server.port, 'SCRIPT', 'FLUSH')
}

async function noHubs(): Promise<void> {
  await eventually(async () => {
    if (String(await operate(server.port, 'CLIENT', 'LIST')).includes('name=rejoin:')) throw new Error('a hub is there')
  })
}

async function copyTo(from: number, to: number): Promise<void> {
  const client = new Redis({ port: server.port, db: to, lazyConnect: true })
  await client.connect()
  await client.flushdb()
  await client.select(from)
  for (const key of await client.keys('*')) await client.copy(key, key, 'DB', to)
  client.disconnect()
}
