import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import type { FaultProxy } from '../../support/fault-proxy/fault-proxy.ts'
import type { RedisServer } from '../../support/redis-server.ts'
import { type OpenedLog, openRedisLog, operate } from './opened-log.ts'
import { between, eventually, redis } from './servers.ts'

const replicated = { durability: 'replicated' } as const
const away = { code: 'log-unavailable', retryable: true }

test('a publish that is to be replicated is answered when a replica has it (§5.6)', async () => {
  const { replica, hub } = await withReplica()
  for (let count = 0; count < 20; count += 1) {
    await hub.publish('a', `${count}`)
    expect(Number(await operate(replica.port, 'XLEN', '{rejoin}:c:a'))).toBe(count + 1)
  }
  expect(hub.log.durability).toBe('replicated')
})

test('a publish that reaches no replica in time fails, and is one event when it is tried again', async () => {
  const { replication, hub } = await withReplica({ answerWithinMs: 500 })
  const entry = { channel: 'a', type: 'message', data: 'kept' }
  const once = { scope: '', key: 'one', hash: 'hash' }
  const publish = () => hub.log.append([entry], { token: randomUUID(), once })
  part(replication)
  await expect(publish()).rejects.toMatchObject({
    ...away,
    message: expect.stringContaining('0 have it, and 1 have to'),
  })
  await expect(hub.log.probe()).rejects.toMatchObject(away)
  expect((await hub.read(['a'], hub.start)).data).toEqual(['kept'])
  replication.accept()
  const { repeated } = await eventually(publish)
  expect(repeated).toBe(true)
  expect((await hub.read(['a'], hub.start)).data).toEqual(['kept'])
})

test('readers do not wait for publishes that wait for replicas', async () => {
  const { replication, hub } = await withReplica({ answerWithinMs: 60_000 })
  part(replication)
  const answered: string[] = []
  const publishing = hub.publish('a', '1').then(() => answered.push('publish'))
  await hub.applied(() => hub.events().length > 0)
  for (let count = 0; count < 10; count += 1) expect((await hub.read(['a'], hub.start)).data).toEqual(['1'])
  expect(answered).toEqual([])
  replication.accept()
  await publishing
})

test('after a failover to the replica, every publish that was answered as replicated is there', async () => {
  const { master, replica, replication, proxy, hub } = await withReplica({ answerWithinMs: 1000 })
  // The new master has a replica too, so that publishes can be confirmed there.
  await redis({ settings: { replicaof: `127.0.0.1 ${replica.port}` } })
  const answered: string[] = []
  const rejected: string[] = []
  let isOver = false
  const publisher = async (name: number) => {
    for (let count = 0; !isOver; count += 1) {
      const text = `${name} ${count}`
      await hub.publish('a', text).then(
        () => answered.push(text),
        () => rejected.push(text),
      )
    }
  }
  const publishers = [1, 2, 3].map(publisher)
  await eventually(async () => expect(answered.length).toBeGreaterThan(100))
  part(replication)
  await eventually(async () => expect(rejected.length).toBeGreaterThan(0))
  await master.kill()
  await operate(replica.port, 'REPLICAOF', 'NO', 'ONE')
  const survived = await textsOf(replica)
  isOver = true
  proxy.target.port = replica.port
  proxy.cutAll('reset')
  await Promise.all(publishers)
  await eventually(() => hub.publish('b', 'goes on'))
  // The hub tells readers that the channel has lost something; what Redis has of it is another matter.
  const data = [...survived, ...(await textsOf(replica))]
  expect(answered.filter((text) => !data.includes(text))).toEqual([])
  expect(rejected.some((text) => !data.includes(text))).toBe(true)
})

test('a Redis that cannot tell when an event is on its disk is rejected for that, with what to do', async () => {
  const server = await redis({ settings: { appendfsync: 'everysec' } })
  await expect(openRedisLog(server.port, { durability: 'disk' })).rejects.toMatchObject({
    code: 'invalid-option',
    message: expect.stringMatching(/WAITAOF came with Redis 7\.2\. Set appendfsync always/),
  })
  await operate(server.port, 'CONFIG', 'SET', 'appendfsync', 'no')
  await expect(openRedisLog(server.port, { durability: 'disk' })).rejects.toThrow('Set everysec or always')
  await operate(server.port, 'CONFIG', 'SET', 'appendonly', 'no')
  await expect(openRedisLog(server.port, { durability: 'disk' })).rejects.toThrow('Set appendonly yes')
})

test('a publish that is to be on disk fails once Redis does not flush any more, and readers are served', async () => {
  const server = await redis({ settings: { appendfsync: 'always' } })
  const hub = await openRedisLog(server.port, { durability: 'disk', answerWithinMs: 500 })
  await hub.publish('a', '1')
  expect(hub.log.durability).toBe('disk')
  await operate(server.port, 'CONFIG', 'SET', 'appendfsync', 'everysec')
  await expect(hub.publish('a', '2')).rejects.toMatchObject({ ...away, message: expect.stringContaining('WAITAOF') })
  await expect(hub.log.probe()).rejects.toMatchObject(away)
  expect((await hub.read(['a'], hub.start)).data).toEqual(['1', '2'])
  await operate(server.port, 'CONFIG', 'SET', 'appendfsync', 'always')
  await hub.publish('a', '3')
})

test('too few replicas are warned of when the log is opened', async () => {
  const server = await redis()
  const warnings: string[] = []
  await openRedisLog(server.port, { ...replicated, replicas: 2, onWarning: (message) => void warnings.push(message) })
  expect(warnings).toEqual([expect.stringContaining('Redis has 0 replicas, and durability replicated waits for 2')])
})

/** What a server holds of the channel, as an operator would look at it. */
async function textsOf({ port }: RedisServer): Promise<string[]> {
  const entries = (await operate(port, 'XRANGE', '{rejoin}:c:a', '-', '+')) as [string, [string, string]][]
  return entries.map(([, [, value]]) => value.slice(value.lastIndexOf('\n') + 1))
}

interface Pair {
  readonly master: RedisServer
  readonly replica: RedisServer
  /** Between the two. */
  readonly replication: FaultProxy
  /** Between the hub and the server that leads. */
  readonly proxy: FaultProxy & { target: { port: number } }
  readonly hub: OpenedLog
}

async function withReplica(options: { answerWithinMs?: number } = {}): Promise<Pair> {
  const settings = { 'repl-diskless-sync-delay': 0 }
  const master = await redis({ settings })
  const replication = await between(master)
  const replica = await redis({ settings: { ...settings, replicaof: `127.0.0.1 ${replication.port}` } })
  const proxy = await between(master)
  await eventually(async () => {
    expect(String(await operate(master.port, 'INFO', 'replication'))).toContain('state=online')
  })
  return {
    master,
    replica,
    replication,
    proxy,
    hub: await openRedisLog(proxy.port, { ...replicated, ...options }),
  }
}

/** Until it accepts connections again, which a replica tries every second. */
function part(replication: FaultProxy): void {
  replication.reject('reset')
  replication.cutAll('reset')
}
