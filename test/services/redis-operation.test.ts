import { isAfter } from '@rejoin/protocol'
import { expect, onTestFinished, test } from 'vitest'
import { type FaultProxy, openFaultProxy } from '../faults/fault-proxy.ts'
import { type RedisServer, type RedisServerOptions, replicated, startRedis } from '../faults/redis-server.ts'
import { openRedisLog, operate } from './redis/opened-log.ts'

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

test.each(['stopped', 'running'])(
  'a server that copies its data from a stale one and leads again tells who saw what was lost, hubs %s (§2.3)',
  async (hubs) => {
    const master = await redis(flushing)
    const replication = await between(master)
    const stale = await redis(replicaOf(replication.port))
    const before = await openRedisLog(master.port)
    const [kept] = await before.publish('a', 'kept')
    await replicated(master)
    replication.refuse('silence')
    replication.cutAll('half-open')
    await operate(stale.port, 'REPLICAOF', 'NO', 'ONE')
    // Read by nobody who stays: a hub that saw it would notice by itself.
    const witness = await openRedisLog(master.port)
    const [lost] = await witness.publish('a', 'lost')
    const [keptId, lostId] = [before.idOf(kept!), witness.idOf(lost!)]
    await witness.log.close()
    if (hubs === 'stopped') await before.log.close()

    await operate(master.port, 'REPLICAOF', '127.0.0.1', String(stale.port))
    const isCopied = async () =>
      String(await operate(master.port, 'INFO', 'replication')).includes('master_link_status:up')
    await untilSo('the copy', isCopied)
    await operate(master.port, 'REPLICAOF', 'NO', 'ONE')
    const hub = hubs === 'stopped' ? await openRedisLog(master.port) : before
    const [next] = await eventually(() => hub.publish('a', 'next'))
    await hub.reached(next!)
    expect(isAfter(next!, lost!)).toBe(true)
    expect(await Promise.all([keptId, lostId, hub.idOf(next!)].map(hub.judge))).toEqual(['ok', 'epoch', 'ok'])
  },
)

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
  const isThere = async () => {
    const [place] = await hub.publish('a', 'moved')
    await hub.reached(place!)
    return proxy.links.size === 2 && (await branchesOf(replica)) === 2
  }
  await untilSo('both connections are at the new master', isThere)
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

test('a log beside which there is no feed is away, and not continued on a new branch', async () => {
  const server = await redis(flushing)
  const before = await openRedisLog(server.port)
  const [first] = await before.publish('a', '1', '2')
  await before.log.close()
  await operate(server.port, 'RENAME', '{rejoin}:feed', '{rejoin}:elsewhere')
  await expect(openRedisLog(server.port)).rejects.toMatchObject({
    ...{ code: 'log-unavailable', retryable: true },
    message: expect.stringContaining('DEL {rejoin}:log'),
  })
  expect(await branchesOf(server)).toBe(1)
  await operate(server.port, 'RENAME', '{rejoin}:elsewhere', '{rejoin}:feed')
  const after = await openRedisLog(server.port)
  expect(after.log.history).toEqual(before.log.history)
  expect((await after.read(['a'], first!)).data).toEqual(['2'])
})

async function branchesOf({ port }: RedisServer): Promise<number> {
  return Number(await operate(port, 'LLEN', '{rejoin}:branches'))
}

async function redis(options?: RedisServerOptions): Promise<RedisServer> {
  const server = await startRedis(options)
  onTestFinished(() => server.remove())
  return server
}

async function between(server: RedisServer): Promise<FaultProxy & { target: { port: number } }> {
  const target = { port: server.port }
  const proxy = await openFaultProxy({ target, random: Math.random })
  onTestFinished(() => proxy.close())
  return Object.assign(proxy, { target })
}

async function untilSo(what: string, isSo: () => Promise<boolean>): Promise<void> {
  await eventually(async () => {
    if (!(await isSo())) throw new Error(`Not yet: ${what}.`)
  })
}

/** What fails while Redis is on its way back, until it does not. */
async function eventually<Result>(attempt: () => Promise<Result>): Promise<Result> {
  for (const deadline = performance.now() + 20_000; ; ) {
    try {
      return await attempt()
    } catch (error) {
      if (performance.now() > deadline) throw error
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}
