import { createHub, type Hub } from '@rejoin/hub'
import { createSubscription } from '@rejoin/hub/internal'
import { redisLog } from '@rejoin/hub/redis'
import { type IdCodec, sequence, ulid } from '@rejoin/protocol'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { comesBack, overAll, readerOf } from '../../support/every-way.ts'
import { type RedisServer, replicated } from '../../support/redis-server.ts'
import { operate } from './opened-log.ts'
import { between, eventually, redis } from './servers.ts'

// A loss is a mark between two positions (§2.3): what the promoted replica has stays readable, and nobody crosses the mark
// without being told.

test('a replica promoted without one event keeps the fifty before it, and each reader that crosses the loss is told there', async () => {
  const { hub, kept, cutReplica, promote, lead } = await startReplicated()
  const here = readerOf(hub, 'a')
  const before = numbered(0, 50)
  const ids = await publishAll(hub, 'a', before)
  await hub.publish('b', { text: 'of b' })
  await kept()
  await here.hears('49')
  cutReplica()
  await hub.publish('a', { text: 'lost' })
  await here.hears('lost')
  await promote()
  await lead(hub)
  await here.hears('epoch')
  await publishAll(hub, 'a', ['new 1', 'new 2'])
  await here.hears('new 2')

  expect(here.said()).toEqual([...before, 'lost', 'epoch', 'new 1', 'new 2'])
  const after = ['epoch', 'new 1', 'new 2']
  expect(await past(hub, ['a'], 'earliest')).toEqual([...before, ...after])
  expect(await past(hub, ['a', 'b'], 'earliest')).toEqual([...before, 'of b', ...after])
  expect(await past(hub, ['*'], 'earliest')).toEqual([...before, 'of b', ...after])
  expect(await past(hub, ['b'], 'earliest')).toEqual(['of b'])
  expect(await past(hub, ['a'], 12)).toEqual([...before.slice(-10), ...after])
  expect(await past(hub, ['a'], 2)).toEqual(['new 1', 'new 2'])
  expect(await comesBack(hub, 'a', ids[39] as string)).toEqual(overAll([...before.slice(40), ...after]))
  expect(await hub.admin.window('a')).toMatchObject({ events: 52 })
})

test('a loss that comes to light late is told before the events behind it, once, and to readers that had passed it', async () => {
  const { hub, other, kept, cutReplica, promote, lead } = await startReplicated()
  const first = readerOf(other, ['a', 'b'])
  await publishAll(hub, 'a', ['a1', 'a2'])
  const [id] = await publishAll(hub, 'b', ['b1'])
  await kept()
  await first.hears('b1')
  cutReplica()
  await hub.publish('a', { text: 'a lost' })
  await promote()
  await lead(hub)
  // The other hub stays with the old master, and finds the new one after events were published there.
  await other.publish('b', { text: 'b lost' })
  await first.hears('b lost')
  await publishAll(hub, 'a', ['a3'])
  const [passed] = await publishAll(hub, 'b', ['b2'])
  await lead(other)
  await first.hears('epoch')
  await eventually(() => hub.publish('b', { text: 'b3' }))
  await first.hears('b3')
  for (const each of [hub, other]) {
    expect(await past(each, ['a'], 'earliest')).toEqual(['a1', 'a2', 'epoch', 'a3'])
    expect(await past(each, ['b'], 'earliest')).toEqual(['b1', 'epoch', 'b2', 'b3'])
    expect(await comesBack(each, 'b', id as string)).toEqual(overAll(['epoch', 'b2', 'b3']))
    // This one had passed the loss before it was known.
    expect(await comesBack(each, 'b', passed as string)).toEqual(overAll(['epoch', 'b3']))
  }
})

test('a loss that nobody can put a channel to is told to every reader, and deletes nothing', async () => {
  const { hub, kept, cutReplica, promote, lead } = await startReplicated()
  await publishAll(hub, 'a', ['a1', 'a2'])
  await publishAll(hub, 'b', ['b1'])
  await kept()
  cutReplica()
  // More channels than a hub remembers one by one.
  const many = Array.from({ length: 17_000 }, (_, at) => ({ channel: `many/${at}`, text: 'lost' }))
  for (let at = 0; at < many.length; at += 1000) await hub.publishBatch(many.slice(at, at + 1000))
  await promote()
  await lead(hub)
  await publishAll(hub, 'a', ['a3'])
  await publishAll(hub, 'b', ['b2'])
  expect(await past(hub, ['a'], 'earliest')).toEqual(['a1', 'a2', 'epoch', 'a3'])
  expect(await past(hub, ['b'], 'earliest')).toEqual(['b1', 'epoch', 'b2'])
  expect(await past(hub, ['*'], 'earliest')).toEqual(['a1', 'a2', 'b1', 'epoch', 'a3', 'b2'])
})

test('readers of a pattern are told of a loss that nobody can put a channel to, also when 64 later marks have replaced its own', async () => {
  const first = await startReplicated()
  const { hub, kept } = first
  const [id] = await publishAll(hub, 'a/1', ['a1', 'a2'])
  await publishAll(hub, 'b/1', ['b1'])
  await kept()
  first.cutReplica()
  const many = Array.from({ length: 17_000 }, (_, at) => ({ channel: `many/${at}`, text: 'lost' }))
  for (let at = 0; at < many.length; at += 1000) await hub.publishBatch(many.slice(at, at + 1000))
  await first.promote()
  await first.lead(hub)
  await publishAll(hub, 'a/1', ['a3'])
  // As 64 failovers would leave the list.
  const mark = String(await operate(first.master(), 'HGET', '{rejoin}:log', 'marks'))
  const later = Array.from({ length: 64 }, (_, at) => `${mark.split('-')[0]}-${at + 1}`)
  await operate(first.master(), 'HSET', '{rejoin}:log', 'marks', [mark, ...later].join(' '))
  const second = await first.replicateAgain()
  await second.kept()
  second.cutReplica()
  await hub.publish('c/1', { text: 'lost' })
  await second.promote()
  await second.lead(hub)
  await publishAll(hub, 'a/1', ['a4'])
  for (const selector of ['a/1', 'a/*', 'b/1', 'b/*', '*']) {
    for (const said of Object.values(await comesBack(hub, selector, id as string))) {
      expect(said.filter((each) => each === 'epoch' || each === 'expired')).not.toEqual([])
    }
  }
  expect(await past(hub, ['a/1'], 2)).toContain('a4')
})

test('a loss that comes to light after the next failover is told in its place, before the events behind it', async () => {
  const first = await startReplicated()
  const { hub, other, kept } = first
  const [id] = await publishAll(hub, 'b', ['b1'])
  await kept()
  first.cutReplica()
  await first.promote()
  await first.lead(hub)
  await other.publish('b', { text: 'b lost' })
  await eventually(async () => expect(await past(other, ['b'], 'earliest')).toContain('b lost'))
  await publishAll(hub, 'b', ['b2'])
  const second = await first.replicateAgain()
  await second.kept()
  second.cutReplica()
  await hub.publish('b', { text: 'b lost too' })
  await second.promote()
  await second.lead(hub)
  await publishAll(hub, 'b', ['b3'])
  await second.lead(other)
  for (const each of [hub, other]) {
    expect(await comesBack(each, 'b', id as string)).toEqual(overAll(['epoch', 'b2', 'epoch', 'b3']))
    expect(await past(each, ['b'], 'earliest')).toEqual(['b1', 'epoch', 'b2', 'epoch', 'b3'])
  }
})

test('a log of counted ids that is rolled back to its beginning tells the readers of what it lost, whichever hub had seen it', async () => {
  const { hub, other, kept, cutReplica, promote, lead } = await startReplicated(sequence())
  const start = await hub.cursor(['a'])
  await kept()
  cutReplica()
  await promote()
  await lead(hub)
  await other.publish('a', { text: 'lost' })
  await eventually(async () => expect(await past(other, ['a'], 'earliest')).toContain('lost'))
  await publishAll(hub, 'a', ['a2'])
  await lead(other)
  for (const each of [hub, other]) {
    expect(await comesBack(each, 'a', start)).toEqual(overAll(['epoch', 'a2']))
  }
})

test('a channel with a mark says what it holds, also when its events were removed by hand', async () => {
  const { hub, kept, cutReplica, promote, lead, master } = await startReplicated()
  await publishAll(hub, 'a', ['a1', 'a2'])
  await kept()
  cutReplica()
  await hub.publish('a', { text: 'lost' })
  await promote()
  await lead(hub)
  expect(await hub.admin.window('a')).toMatchObject({ events: 2 })
  await operate(master(), 'DEL', '{rejoin}:c:a')
  expect(await hub.admin.window('a')).toMatchObject({ oldest: null, newest: null })
  const [id] = await publishAll(hub, 'a', ['a3'])
  expect(await hub.admin.window('a')).toMatchObject({ oldest: id, newest: id })
})

const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => String(from + at))

async function publishAll(hub: Hub, channel: string, texts: readonly string[]): Promise<string[]> {
  const ids: string[] = []
  for (const text of texts) ids.push((await eventually(() => hub.publish(channel, { text }))).id)
  return ids
}

/** What a reader of the past gets until it has caught up: the data of events, and the reason of each gap. */
async function past(hub: Hub, channels: string[], start: 'earliest' | number): Promise<string[]> {
  const from = start === 'earliest' ? ({ from: start } as const) : ({ from: 'last', events: start } as const)
  const answer = await hub.port.poll({ subscription: createSubscription(channels), start: from }, { waitMs: 0 })
  if (!('events' in answer)) throw new Error(answer.reason)
  return answer.events.flatMap(({ type, data }) => {
    if (type === 'sync-required') return [(JSON.parse(data) as { reason: string }).reason]
    return type === 'message' ? [data] : []
  })
}

/** Two hubs on a master, each with a line of its own to it, and a replica that can be cut off and promoted. */
async function startReplicated(codec: IdCodec = ulid()): Promise<Replicated> {
  const master = await redis({ settings: { 'repl-diskless-sync-delay': 0 } })
  const standby = await replicate(master)
  const lines = new Map<Hub, Awaited<ReturnType<typeof between>>>()
  const open = async () => {
    const line = await between(master)
    const log = redisLog(new Redis({ port: line.port, lazyConnect: true }), { codec, onWarning: () => undefined })
    const hub = await createHub({ log })
    onTestFinished(() => hub.close())
    lines.set(hub, line)
    return hub
  }
  const [hub, other] = [await open(), await open()]

  const withReplica = (from: RedisServer, { replica, replication }: Standby): Replicated => ({
    ...{ hub, other },
    kept: () => replicated(from),
    cutReplica() {
      replication.reject('silence')
      replication.cutAll('half-open')
    },
    promote: () => operate(replica.port, 'REPLICAOF', 'NO', 'ONE'),
    async lead(which) {
      const line = lines.get(which)
      if (!line) return
      line.target.port = replica.port
      line.cutAll('reset')
      await eventually(() => which.publish('elsewhere', { text: 'here', live: true }))
    },
    replicateAgain: async () => withReplica(replica, await replicate(replica)),
    master: () => replica.port,
  })
  return withReplica(master, standby)
}

async function replicate(master: RedisServer): Promise<Standby> {
  const replication = await between(master)
  const settings = { 'repl-diskless-sync-delay': 0, replicaof: `127.0.0.1 ${replication.port}` }
  const replica = await redis({ settings })
  // A master names its lineage anew when its first replica comes.
  await replicated(master)
  return { replica, replication }
}

interface Standby {
  readonly replica: RedisServer
  /** Between the master and the replica. */
  readonly replication: Awaited<ReturnType<typeof between>>
}

interface Replicated {
  readonly hub: Hub
  readonly other: Hub
  /** Resolves when the replica has everything. */
  kept(): Promise<unknown>
  /** What is published from now on does not reach the replica. */
  cutReplica(): void
  /** Makes the replica a master, too. */
  promote(): Promise<unknown>
  /** This hub finds the promoted replica from now on. Resolves when it has. */
  lead(hub: Hub): Promise<void>
  /** Gives the promoted replica a replica of its own. */
  replicateAgain(): Promise<Replicated>
  /** The port of the promoted replica. */
  master(): number
}
