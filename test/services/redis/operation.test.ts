import { createHub, type Hub } from '@rejoin/hub'
import { redisLog } from '@rejoin/hub/redis'
import { isAfter, origin, sequence } from '@rejoin/protocol'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { readerOf } from '../../support/every-way.ts'
import { type RedisServer, replicated } from '../../support/redis-server.ts'
import { openLogOf, openRedisLog, operate } from './opened-log.ts'
import { between, eventually, redis } from './servers.ts'

const flushing = { settings: { appendfsync: 'always', 'repl-diskless-sync-delay': 0 } }
const replicaOf = (port: number) => ({ settings: { ...flushing.settings, replicaof: `127.0.0.1 ${port}` } })

test('an answered publish is called as safe as Redis is set at that moment (§5.6)', async () => {
  const server = await redis(flushing)
  const warnings: string[] = []
  const hub = await openRedisLog(server.port, { onWarning: (message) => void warnings.push(message) })
  const afterPublish = async () => {
    await hub.publish('a', '1')
    return hub.log.durability
  }
  expect(await afterPublish()).toBe('disk')
  await operate(server.port, 'CONFIG', 'SET', 'appendfsync', 'everysec')
  expect(await afterPublish()).toBe('memory')
  expect(warnings).toEqual([expect.stringContaining('durability memory, no longer disk')])
  await operate(server.port, 'CONFIG', 'SET', 'appendfsync', 'always')
  expect(await afterPublish()).toBe('disk')
  await operate(server.port, 'CONFIG', 'SET', 'appendonly', 'no')
  await hub.log.probe()
  expect(hub.log.durability).toBe('memory')
})

test('an answered publish is called as safe as the server is that took over (§5.6)', async () => {
  const master = await redis(flushing)
  const other = await redis({ settings: { ...flushing.settings, appendonly: 'no' } })
  const proxy = await between(master)
  const hub = await openRedisLog(proxy.port)
  await hub.publish('a', '1')
  expect(hub.log.durability).toBe('disk')
  proxy.target.port = other.port
  proxy.cutAll('reset')
  await hub.publish('a', '2')
  expect(hub.log.durability).toBe('memory')
})

test('a hub starts while Redis gets its first replica, which gives the server another identity (§2.3)', async () => {
  const server = await redis({ settings: { ...flushing.settings, 'enable-debug-command': 'yes' } })
  const client = new Redis({ port: server.port, lazyConnect: true })
  let calls = 0
  const inBetween = async () => {
    calls += 1
    // After the first look at the server, before the first use of what it said.
    if (calls === 2) await operate(server.port, 'DEBUG', 'CHANGE-REPL-ID')
  }
  const duplicate = client.duplicate.bind(client)
  client.duplicate = (options) => {
    const copy = duplicate(options)
    const call = copy.call.bind(copy) as (...command: string[]) => Promise<unknown>
    const later = async (...command: string[]) => {
      await inBetween()
      return call(...command)
    }
    return Object.assign(copy, { call: later })
  }
  const hub = await openLogOf(client)
  const [one] = await hub.publish('a', 'one')
  await hub.reached(one!)
  expect(hub.events().map(({ data }) => data)).toEqual(['one'])
})

test.each(['stopped', 'running'])(
  'a server that copies its data from a stale one and leads again tells readers that saw lost events, hubs %s (§2.3)',
  async (hubs) => {
    const master = await redis(flushing)
    const replication = await between(master)
    const stale = await redis(replicaOf(replication.port))
    const before = await openRedisLog(master.port)
    const [kept] = await before.publish('a', 'kept')
    await replicated(master)
    replication.reject('silence')
    replication.cutAll('half-open')
    await operate(stale.port, 'REPLICAOF', 'NO', 'ONE')
    // Read by nobody who stays: a hub that saw it would notice by itself.
    const witness = await openRedisLog(master.port)
    const [lost] = await witness.publish('a', 'lost')
    const [keptId, lostId] = [before.idOf(kept!), witness.idOf(lost!)]
    await witness.log.close()
    if (hubs === 'stopped') await before.log.close()

    await leadAgain(master, stale)
    const hub = hubs === 'stopped' ? await openRedisLog(master.port) : before
    const [next] = await eventually(() => hub.publish('a', 'next'))
    await hub.reached(next!)
    expect(isAfter(next!, lost!)).toBe(true)
    expect(await Promise.all([keptId, lostId, hub.idOf(next!)].map(hub.judge))).toEqual(['ok', 'epoch', 'ok'])
  },
)

test('a server that copied its data from a stale one is not vouched for by a hub that heard nothing of what was lost (§2.3)', async () => {
  const master = await redis(flushing)
  const replication = await between(master)
  const stale = await redis(replicaOf(replication.port))
  const connection = await between(master)
  const deaf = await openRedisLog(connection.port)
  await deaf.publish('a', 'kept')
  await replicated(master)
  replication.reject('silence')
  replication.cutAll('half-open')
  await operate(stale.port, 'REPLICAOF', 'NO', 'ONE')
  // Redis still counts its connections, and it knows of nothing that is missing later on.
  connection.reject('silence')
  connection.cutAll('half-open')
  const other = await openRedisLog(master.port)
  const [lost] = await other.publish('a', 'lost')
  const lostId = other.idOf(lost!)
  await other.log.close()

  await leadAgain(master, stale)
  const hub = await openRedisLog(master.port)
  const [next] = await hub.publish('a', 'next')
  await hub.reached(next!)
  expect(await hub.judge(lostId)).toBe('epoch')
})

test.each([
  ['dates', {}],
  ['numbers', { codec: sequence() }],
])(
  'an older copy that is put back while no hub runs is told to readers that saw more, with %s for ids (§2.3)',
  async (_, options) => {
    const server = await redis(flushing)
    const before = await openRedisLog(server.port, options)
    const [one, two] = await before.publish('a', 'one', 'two')
    const ids = [one!, two!].map(before.idOf)
    await copyAll(server)
    const lost = (await before.publish('a', 'three', 'four')).map(before.idOf)
    await before.log.close()
    await noHubOn(server)
    await operate(server.port, 'SWAPDB', '0', '1')

    const hub = await openRedisLog(server.port, options)
    const [five] = await hub.publish('a', 'five')
    await hub.reached(five!)
    expect(await Promise.all([...ids, ...lost, hub.idOf(five!)].map(hub.judge))).toEqual([
      ...['ok', 'ok', 'epoch', 'epoch', 'ok'],
    ])
    expect((await hub.read(['a'], one!)).data).toEqual(['two', 'five'])
  },
)

test('an older copy that is put back under running hubs is told, also when a hub that starts then publishes first (§2.3.8)', async () => {
  const server = await redis(flushing)
  const running = await Promise.all([1, 2, 3].map(() => openRedisLog(server.port)))
  const [one] = await running[0]!.publish('a', 'one')
  const [other] = await running[0]!.publish('b', 'other')
  await copyAll(server)
  const [three, four] = await running[0]!.publish('a', 'three', 'four')
  await Promise.all(running.map((hub) => hub.reached(four!)))
  await operate(server.port, 'SWAPDB', '0', '1')
  const started = await openRedisLog(server.port)
  const [five] = await started.publish('b', 'five')
  await Promise.all(running.map((hub) => hub.reached(five!)))
  for (const hub of [...running, started]) {
    for (const had of [one!, three!, four!]) {
      expect((await hub.read(['a'], had)).gap).toMatchObject({ channels: ['a'], reason: 'epoch' })
    }
    expect(await hub.read(['b'], other!)).toEqual({ data: ['five'], gap: undefined })
  }
  // The hubs that saw the same report it once.
  expect(await branchesOf(server)).toBe(2)
})

test('a hub that starts beside another one opens no branch, and hubs that start at once are on one, alarming nobody (§2.3)', async () => {
  const server = await redis(flushing)
  const first = await openRedisLog(server.port)
  const [one] = await first.publish('a', 'one')
  const second = await openRedisLog(server.port)
  expect([await branchesOf(server), second.log.history]).toEqual([1, first.log.history])
  await first.log.close()
  await second.log.close()
  await killed(server)
  const all = await Promise.all(Array.from({ length: 8 }, () => openRedisLog(server.port)))
  const branches = await branchesOf(server)
  expect(branches).toBeGreaterThan(1)
  const published = ['one']
  for (const [at, hub] of all.entries()) {
    await hub.publish('a', `next ${at}`)
    published.push(`next ${at}`)
    expect([hub.log.history.length, await hub.judge(first.idOf(one!))]).toEqual([branches, 'ok'])
  }
  for (const hub of all) expect((await hub.read(['a'], origin)).data).toEqual(published)
  expect(await branchesOf(server)).toBe(branches)
})

test('what the keys of a log say of a hub is no proof that the hub is there (§2.3)', async () => {
  const server = await redis(flushing)
  const before = await openRedisLog(server.port)
  const [one] = await before.publish('a', 'one')
  // This is copied with the log, and put back with it.
  await before.log.meet?.('here', 600_000)
  await before.log.orders?.({ after: '', forMs: 600_000 })
  await before.log.close()
  await killed(server)
  const after = await openRedisLog(server.port)
  expect([await branchesOf(server), await after.judge(before.idOf(one!))]).toEqual([2, 'ok'])
})

test('a log keeps the names of 1,000 branches at most; ids of older ones are told epoch, and their events are read (§2.3.6)', async () => {
  const server = await redis(flushing)
  const before = await openRedisLog(server.port)
  const [one] = await before.publish('a', 'one')
  const id = before.idOf(one!)
  const { ms } = one!
  const lines = Array.from(
    { length: 999 },
    (_, at) => `${String(at).padStart(8, '0')} ${2000 + at} ${ms}-${at + 1} ${ms}-${at}`,
  )
  await operate(server.port, 'RPUSH', '{rejoin}:branches', ...lines)
  await before.log.close()
  await killed(server)
  const hub = await openRedisLog(server.port)
  expect(await branchesOf(server)).toBe(500)
  const [two] = await hub.publish('a', 'two')
  expect([await hub.judge(id), await hub.judge(hub.idOf(one!)), await hub.judge(hub.idOf(two!))]).toEqual([
    ...['epoch', 'ok', 'ok'],
  ])
  expect((await hub.read(['a'], origin)).data).toEqual(['one', 'two'])
})

test.each([
  ['asks', 0],
  ['listens', 1],
])('a hub whose connection that %s has moved to a new master follows with the other one', async (_, moved) => {
  const master = await redis(flushing)
  const replica = await redis(replicaOf(master.port))
  const proxy = await between(master)
  const hub = await openRedisLog(proxy.port)
  await hub.publish('a', '1')
  await replicated(master)
  // Nobody has told the old master, and it lives on.
  await operate(replica.port, 'REPLICAOF', 'NO', 'ONE')
  proxy.target.port = replica.port
  ;[...proxy.links][moved]!.cut('reset')
  const texts = Array.from({ length: 10 }, (_, count) => `after ${count}`)
  await eventually(async () => {
    const [place] = await hub.publish('a', 'moved')
    await hub.reached(place!)
    expect({ links: proxy.links.size, branches: await branchesOf(replica) }).toEqual({ links: 2, branches: 2 })
  })
  const began = performance.now()
  for (const text of texts) await hub.reached((await hub.publish('a', text))[0]!)
  expect(performance.now() - began).toBeLessThan(5000)
  expect(await Promise.all([branchesOf(master), branchesOf(replica)])).toEqual([1, 2])
  expect(
    hub
      .events()
      .slice(-10)
      .map(({ data }) => data),
  ).toEqual(texts)
})

test('a log whose feed is missing is unavailable, and not continued on a new branch', async () => {
  const server = await redis(flushing)
  const before = await openRedisLog(server.port)
  const [first] = await before.publish('a', '1', '2')
  await before.log.close()
  await noHubOn(server)
  await operate(server.port, 'RENAME', '{rejoin}:feed', '{rejoin}:elsewhere')
  await expect(openRedisLog(server.port)).rejects.toMatchObject({
    ...{ code: 'log-unavailable', retryable: true },
    message: expect.stringContaining('DEL {rejoin}:log'),
  })
  await operate(server.port, 'RENAME', '{rejoin}:elsewhere', '{rejoin}:feed')
  const after = await openRedisLog(server.port)
  expect(after.log.history).toEqual(before.log.history)
  expect((await after.read(['a'], first!)).data).toEqual(['2'])
})

test('a log whose state is removed under running hubs begins anew, and tells every reader (§2.3)', async () => {
  const server = await redis(flushing)
  const hub = await openRedisLog(server.port)
  const [one] = await hub.publish('a', 'one')
  const id = hub.idOf(one!)
  await operate(server.port, 'DEL', '{rejoin}:log')
  const [two] = await eventually(() => hub.publish('a', 'two'))
  expect([await hub.judge(id), await hub.judge(hub.idOf(two!))]).toEqual(['epoch', 'ok'])
  expect((await hub.read(['a'], origin)).data).toEqual(['two'])
})

test('a list of branches that is removed under running hubs stops no publish, and cursors from before are told when it is missed', async () => {
  const server = await redis(flushing)
  const hub = await openRedisLog(server.port)
  const id = hub.idOf((await hub.publish('a', 'one'))[0]!)
  await operate(server.port, 'DEL', '{rejoin}:branches')
  const [two] = await hub.publish('a', 'two')
  await hub.reached(two!)
  const late = await openRedisLog(server.port)
  expect([await late.judge(id), await late.judge(late.idOf(two!))]).toEqual(['epoch', 'ok'])
  expect((await late.read(['a'], origin)).data).toEqual(['one', 'two'])
})

test('a feed that is deleted under running hubs is made again by the next publish, and readers miss nothing', async () => {
  const server = await redis(flushing)
  const hubs = await Promise.all([1, 2].map(() => openHub(server)))
  const readers = hubs.map((hub) => readerOf(hub, 'a'))
  const { id } = await hubs[0]!.publish('a', { text: 'one' })
  await Promise.all(readers.map((reader) => reader.hears('one')))
  await operate(server.port, 'DEL', '{rejoin}:feed')
  for (const [at, text] of ['two', 'three'].entries()) await hubs[at]!.publish('a', { text })
  await Promise.all(readers.map((reader) => reader.hears('three')))
  for (const reader of readers) expect(reader.said()).toEqual(['one', 'two', 'three'])
  const back = readerOf(await openHub(server), 'a', id)
  await back.hears('three')
  expect(back.said()).toEqual(['two', 'three'])
})

async function openHub({ port }: RedisServer): Promise<Hub> {
  const log = redisLog(new Redis({ port, lazyConnect: true }), { onWarning: () => undefined })
  const hub = await createHub({ log })
  onTestFinished(() => hub.close())
  return hub
}

/** The server copies the data of a stale one, and is a master again: the same process, another lineage. */
async function leadAgain({ port }: RedisServer, stale: RedisServer): Promise<void> {
  await operate(port, 'REPLICAOF', '127.0.0.1', String(stale.port))
  await untilSo('the copy', async () =>
    String(await operate(port, 'INFO', 'replication')).includes('master_link_status:up'),
  )
  await operate(port, 'REPLICAOF', 'NO', 'ONE')
}

async function copyAll({ port }: RedisServer): Promise<void> {
  for (const key of (await operate(port, 'KEYS', '*')) as string[]) await operate(port, 'COPY', key, key, 'DB', '1')
}

/** What the last hub has left behind is gone, too, as if the hub had been killed. */
async function killed(server: RedisServer): Promise<void> {
  await noHubOn(server)
  await operate(server.port, 'SCRIPT', 'FLUSH')
}

/** Redis has seen that the hubs have gone. */
async function noHubOn({ port }: RedisServer): Promise<void> {
  await untilSo(
    'no hub is connected',
    async () => !String(await operate(port, 'CLIENT', 'LIST')).includes('name=rejoin:'),
  )
}

async function branchesOf({ port }: RedisServer): Promise<number> {
  return Number(await operate(port, 'LLEN', '{rejoin}:branches'))
}

async function untilSo(what: string, isSo: () => Promise<boolean>): Promise<void> {
  await eventually(async () => {
    if (!(await isSo())) throw new Error(`Not yet: ${what}.`)
  })
}
