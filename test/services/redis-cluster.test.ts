import { setTimeout as pause } from 'node:timers/promises'
import { Cluster } from 'ioredis'
import { createCluster } from 'redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askRedis, type RedisServer, replicated, startRedis } from '../faults/redis-server.ts'
import { openLogOf } from './redis/opened-log.ts'

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
  ioredis: () =>
    new Cluster(
      servers.map(({ port }) => ({ port, host: '127.0.0.1' })),
      { lazyConnect: true },
    ),
  redis: () => createCluster({ rootNodes: servers.map(({ port }) => ({ url: `redis://127.0.0.1:${port}` })) }),
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
})

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
