import { setTimeout as pause } from 'node:timers/promises'
import { isSame, type Position } from '@rejoin/protocol'
import { Cluster } from 'ioredis'
import { createCluster } from 'redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askRedis, type RedisServer, replicated, startRedis } from '../../support/redis-server.ts'
import { type OpenedLog, openLogOf } from './opened-log.ts'

let servers: RedisServer[] = []
beforeAll(async () => {
  const settings = { 'cluster-enabled': 'yes', 'cluster-node-timeout': 1000, 'repl-diskless-sync-delay': 0 }
  servers = await Promise.all(Array.from({ length: 6 }, () => startRedis({ settings })))
  const nodes = servers.map(({ port }) => `127.0.0.1:${port}`)
  await askRedis(servers[0]!.port, '--cluster', 'create', ...nodes, '--cluster-replicas', '1', '--cluster-yes')
  await until(isFormed)
}, 60_000)
afterAll(() => Promise.all(servers.map((server) => server.remove())))

const clients = {
  ioredis: () => new Cluster(addresses(), { lazyConnect: true }),
  redis: () => createCluster({ rootNodes: rootNodes() }),
}

describe.each(Object.entries(clients))('a Cluster of three, with a client of %s', (prefix, client) => {
  test('keeps a log on one of its masters, and goes on when that one dies', async () => {
    const hub = await openLogOf(client(), { prefix })
    const [first] = await hub.publish('a', '1', '2')
    await hub.reached(await hub.log.head())
    expect((await hub.read(['a'], hub.start)).data).toEqual(['1', '2'])

    const owner = await ownerOf(prefix)
    // The replica has everything: this is about finding it, not about loss.
    await replicated(owner)
    await owner.kill()
    await until(async () => {
      try {
        await hub.publish('a', '3')
        return true
      } catch {
        // Nobody has taken over yet.
        return false
      }
    })
    await hub.reached(await hub.log.head())
    const { data } = await hub.read(['a'], first!)
    expect([data[0], data.at(-1)]).toEqual(['2', '3'])
    expect(hub.events().map((event) => event.data)).toEqual(['1', ...data])
    expect(await hub.judge(hub.idOf(first!))).toBe('ok')
    expect(hub.log.history.length).toBeGreaterThan(1)
    await owner.start()
    await until(isFormed)
  }, 60_000)

  test('loses nothing in silence when its slot is moved under traffic, against all advice', async () => {
    const log = `${prefix}-moved`
    const hub = await openLogOf(client(), { prefix: log })
    const channels = ['a', 'b', 'c']
    const acknowledged: Record<string, string[]> = { a: [], b: [], c: [] }
    const rejections = new Set<string>()
    let isOver = false
    const publisher = async (channel: string) => {
      for (let count = 0; !isOver; count += 1) {
        await hub.publish(channel, `${count}`).then(
          () => acknowledged[channel]!.push(`${count}`),
          (error) => rejections.add(error.code),
        )
      }
    }
    const publishers = channels.map(publisher)
    await until(async () => channels.every((channel) => acknowledged[channel]!.length > 20))
    await moveSlot(log)
    const moved = acknowledged.a!.length
    await until(async () => acknowledged.a!.length > moved + 20)
    isOver = true
    await Promise.all(publishers)
    await hub.reached(await hub.log.head())

    expect([...rejections].filter((code) => code !== 'log-unavailable')).toEqual([])
    for (const channel of channels) {
      const heard = new Set(hub.events().flatMap((event) => (event.channel === channel ? [event.data] : [])))
      const { data, gap } = await hub.read([channel], hub.start, 100_000)
      const isTold =
        gap !== undefined || hub.batches.some(({ after }, index) => index > 0 && !isFollowed(hub, index, after))
      const missing = acknowledged[channel]!.filter((text) => !(data.includes(text) && heard.has(text)))
      expect([channel, isTold ? [] : missing]).toEqual([channel, []])
    }
    // One for the new master; none for each time a node was asked that had half of the log.
    expect(hub.log.history).toHaveLength(2)
  }, 60_000)
})

test.each([
  ['ioredis', () => new Cluster(addresses(), { lazyConnect: true, scaleReads: 'slave' })],
  ['redis', () => createCluster({ rootNodes: rootNodes(), useReplicas: true })],
])(
  'a replica, which may be behind, is never read, also with a client of %s that reads replicas',
  async (name, client) => {
    await until(isFormed)
    const prefix = `replicas-${name}`
    await Promise.all(servers.map(({ port }) => askRedis(port, 'CONFIG', 'RESETSTAT')))
    const hub = await openLogOf(client(), { prefix })
    await hub.publish('a', '1', '2')
    await hub.reached(await hub.log.head())
    expect((await hub.read(['a'], hub.start)).data).toEqual(['1', '2'])
    const owner = await ownerOf(prefix)
    const read: number[] = []
    for (const { port } of servers) {
      if (/cmdstat_xread:/.test(await askRedis(port, 'INFO', 'commandstats'))) read.push(port)
    }
    expect(read).toEqual([owner.port])
  },
  60_000,
)

function addresses() {
  return servers.map(({ port }) => ({ port, host: '127.0.0.1' }))
}

function rootNodes() {
  return servers.map(({ port }) => ({ url: `redis://127.0.0.1:${port}` }))
}

/** Whether a batch goes on where the one before it ended. */
function isFollowed({ batches }: OpenedLog, index: number, after: Position): boolean {
  const before = batches[index - 1]
  return isSame(after, before?.events.at(-1)?.position ?? before?.after ?? after)
}

/** Key by key, as redis-cli does it. The order is the worst there is: what says that there is a log first, its feed last. */
async function moveSlot(prefix: string): Promise<void> {
  const from = await ownerOf(prefix)
  const slot = (await askRedis(from.port, 'CLUSTER', 'KEYSLOT', `{${prefix}}:log`)).trim()
  const ids = new Map(
    await Promise.all(
      servers.map(async ({ port }) => [port, (await askRedis(port, 'CLUSTER', 'MYID')).trim()] as [number, string]),
    ),
  )
  const masters: RedisServer[] = []
  for (const server of servers) {
    if ((await askRedis(server.port, 'INFO', 'replication')).includes('role:master')) masters.push(server)
  }
  const to = masters.find(({ port }) => port !== from.port) as RedisServer
  await askRedis(to.port, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', ids.get(from.port)!)
  await askRedis(from.port, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', ids.get(to.port)!)
  for (;;) {
    const found = (await askRedis(from.port, 'CLUSTER', 'GETKEYSINSLOT', slot, '100')).split('\n').filter(Boolean)
    const turnOf = (key: string) => (key.endsWith('}:log') ? 0 : key.endsWith('}:feed') ? 2 : 1)
    const keys = found.sort((a, b) => turnOf(a) - turnOf(b))
    if (keys.length === 0) break
    for (const key of keys) {
      await askRedis(from.port, 'MIGRATE', '127.0.0.1', String(to.port), key, '0', '5000', 'REPLACE')
      // So that publishes come between two keys.
      await pause(100)
    }
  }
  for (const { port } of [to, from, ...masters]) {
    await askRedis(port, 'CLUSTER', 'SETSLOT', slot, 'NODE', ids.get(to.port)!)
  }
}

/** Whether every node serves, knows all others to be well, and every master has a replica that is up with it. */
async function isFormed(): Promise<boolean> {
  const looks = await Promise.all(
    servers.map(async ({ port }) => {
      const [info, nodes, replication] = await Promise.all([
        askRedis(port, 'CLUSTER', 'INFO'),
        askRedis(port, 'CLUSTER', 'NODES'),
        askRedis(port, 'INFO', 'replication'),
      ])
      const isWell = info.includes('cluster_state:ok') && info.includes('cluster_size:3')
      const isKnown =
        nodes.trim().split('\n').length === servers.length && !/fail|handshake|noaddr| disconnected/.test(nodes)
      return isWell && isKnown && /master_link_status:up|slave0:.*state=online/.test(replication)
    }),
  )
  return looks.every(Boolean)
}

async function ownerOf(prefix: string): Promise<RedisServer> {
  const alive = servers[0] as RedisServer
  const slot = Number(await askRedis(alive.port, 'CLUSTER', 'KEYSLOT', `{${prefix}}:log`))
  const nodes = await askRedis(alive.port, 'CLUSTER', 'NODES')
  for (const line of nodes.split('\n')) {
    const [, address = '', , , , , , , ...ranges] = line.split(' ')
    const isOwner = ranges.some((range) => {
      const [from, to = from] = range.split('-').map(Number)
      return from !== undefined && slot >= from && slot <= (to as number)
    })
    const port = Number(/:(\d+)@/.exec(address)?.[1])
    const server = servers.find((candidate) => candidate.port === port)
    if (isOwner && server) return server
  }
  throw new Error(`No master of slot ${slot}: ${nodes}`)
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (const deadline = performance.now() + 40_000; !(await isSo()); ) {
    if (performance.now() > deadline) throw new Error('It did not come to that within 40 s.')
    await pause(50)
  }
}
