import { randomUUID } from 'node:crypto'
import { openFaultProxy } from '../../support/fault-proxy/fault-proxy.ts'
import { askRedis, startRedis } from '../../support/redis-server.ts'
import { throughHttp } from '../recorders/recorders.ts'
import type { RedisStage } from './stage.ts'
import { readSurvivors, type Survivors, survivorsOn } from './survivors.ts'

/** Kills one hub after the other; its readers go on at the next, and come back to it. */
export async function killHubs(stage: RedisStage, cycles: number, apartMs: number): Promise<void> {
  const { hubs, history, crowd, pause } = stage
  for (let cycle = 0; cycle < cycles; cycle += 1) {
    const victim = cycle % hubs.length
    history.write({ kind: 'fault', what: `kill -9 of hub ${victim}` })
    await hubs[victim]?.kill()
    stage.lead(victim, (victim + 1) % hubs.length)
    history.write({ kind: 'heal' })
    await pause(apartMs)
    await hubs[victim]?.start()
    stage.lead(victim, victim)
    await crowd.renewed()
    await pause(apartMs)
  }
}

/** Kills Redis and starts it again on its append-only file; and lets it stand still. */
export async function restartRedis(stage: RedisStage, cycles: number, awayMs: number, apartMs: number): Promise<void> {
  const { redis, history, crowd, pause } = stage
  for (let cycle = 0; cycle < cycles; cycle += 1) {
    await pause(apartMs)
    history.write({ kind: 'fault', what: 'kill -9 of Redis' })
    await redis.kill()
    await pause(awayMs)
    await redis.start()
    history.write({ kind: 'heal' })
    await crowd.renewed()
    await pause(apartMs)
    history.write({ kind: 'fault', what: 'Redis stands still' })
    redis.pause()
    await pause(awayMs)
    redis.resume()
    history.write({ kind: 'heal' })
    await crowd.renewed()
  }
}

/** Empties Redis: while it runs, by a restart, and by removing the log's own state. */
export async function emptyRedis(stage: RedisStage, cycles: number, apartMs: number): Promise<void> {
  const { redis, history, crowd, pause } = stage
  const ways = {
    'a FLUSHALL': () => askRedis(redis.port, 'FLUSHALL'),
    'an empty restart': async () => {
      await redis.kill()
      redis.empty()
      await redis.start()
    },
    'its state removed': () => askRedis(redis.port, 'DEL', '{rejoin}:log'),
  }
  for (let cycle = 0; cycle < cycles; cycle += 1) {
    for (const [what, empty] of Object.entries(ways)) {
      await pause(apartMs)
      history.write({ kind: 'fault', what })
      history.write({ kind: 'branch', why: what })
      await empty()
      history.write({ kind: 'heal' })
      await everyHubKnows(stage)
      await crowd.renewed()
    }
  }
}

/**
 * Kills a Redis that flushes its file every second. Every other time the machine goes with it, and with that what was written
 * in the last moments, acknowledged or not.
 */
export async function cutPower(stage: RedisStage, cycles: number, lostMs: number, apartMs: number): Promise<void> {
  const { redis, history, crowd, pause, random } = stage
  for (let cycle = 0; cycle < cycles; cycle += 1) {
    await pause(apartMs)
    const isPowerCut = cycle % 2 === 0
    const since = performance.timeOrigin + performance.now()
    const kept = redis.written()
    if (isPowerCut) await pause(lostMs * (0.1 + 0.9 * random()))
    history.write({ kind: 'fault', what: isPowerCut ? 'a power cut' : 'kill -9 of Redis' })
    history.write({
      kind: 'branch',
      why: 'the newest events may be lost',
      mayLoseSince: since - unwrittenMs,
      ...(isPowerCut ? { losesSince: since } : {}),
    })
    await redis.kill()
    if (isPowerCut) redis.cutTo(kept)
    await redis.start()
    history.write({ kind: 'heal' })
    await everyHubKnows(stage)
    await crowd.renewed()
  }
}

// So long Redis puts a write off while a flush is under way, and longer than a replica is behind.
const unwrittenMs = 2000

/** A hub that has stored an event knows which log it is that holds it. */
async function everyHubKnows({ hubs, history, pause }: Pick<RedisStage, 'hubs' | 'history' | 'pause'>): Promise<void> {
  for (const { port } of hubs) {
    const send = throughHttp(`http://127.0.0.1:${port}`)
    const isStored = async () => (await send('unread', 'who is there?', randomUUID())).kind === 'ok'
    const limit = performance.now() + storedWithinMs
    while (!(await isStored())) {
      if (performance.now() > limit) throw new Error(`The hub at ${port} does not take events again.`)
      await pause(20)
    }
  }
  history.write({ kind: 'branched' })
}

const storedWithinMs = 30_000

/** Cuts the replica off, lets the master go on for a while, and makes the replica the master. */
export async function promoteReplica(stage: RedisStage, lagMs: number): Promise<void> {
  const { redis, history, crowd, pause, random } = stage
  const replication = await openFaultProxy({ target: { port: redis.port }, random })
  stage.closing(() => replication.close())
  const replica = await startRedis({ settings: { replicaof: `127.0.0.1 ${replication.port}` } })
  stage.closing(() => replica.remove())
  // Hundreds of events survive a small lag.
  await pause(beforeLossMs)
  await replicatedOnce(redis)
  replication.reject('silence')
  replication.cutAll('half-open')
  const since = performance.timeOrigin + performance.now()
  await pause(lagMs)
  history.write({ kind: 'fault', what: `a replica ${lagMs} ms behind becomes the master` })
  history.write({
    ...{ kind: 'branch', why: 'the newest events are lost' },
    ...{ mayLoseSince: since - unwrittenMs, losesSince: since },
  })
  await redis.kill()
  await askRedis(replica.port, 'REPLICAOF', 'NO', 'ONE')
  const survivors = await survivorsOn(replica)
  stage.serveFrom(replica)
  history.write({ kind: 'heal' })
  await everyHubKnows(stage)
  await crowd.renewed()
  await stillThere(stage, survivors)
}

const beforeLossMs = 1000

/** A loss takes nothing with it: what the new master had when the hubs came is read from the beginning as before. */
async function stillThere({ hubs }: Pick<RedisStage, 'hubs'>, survivors: Survivors): Promise<void> {
  const count = await readSurvivors(hubs, survivors)
  console.log(`${count} events of before are readable from the beginning on each of ${hubs.length} hubs`)
}

/**
 * Makes the replica a master while the old one lives, and leads all hubs but the first to it. Both take events for a while, and
 * then the first hub is led there as well.
 */
export async function splitMasters(
  stage: RedisStage,
  { lagMs, apartMs, aheadMs = 0 }: { lagMs: number; apartMs: number; aheadMs?: number },
): Promise<void> {
  const { redis, hubs, history, crowd, pause, random, setRedisClock } = stage
  const replication = await openFaultProxy({ target: { port: redis.port }, random })
  stage.closing(() => replication.close())
  const replica = await startRedis({ settings: { replicaof: `127.0.0.1 ${replication.port}` } })
  stage.closing(() => replica.remove())
  await replicatedOnce(redis)
  // The first replica changes the name of the master's lineage; with the next call the hubs open a branch for it.
  await everyHubKnows(stage)
  await pause(apartMs)
  const epoch = (await askRedis(redis.port, 'HGET', '{rejoin}:log', 'epoch')).trim()
  replication.reject('silence')
  replication.cutAll('half-open')
  const since = performance.timeOrigin + performance.now()
  await pause(lagMs)
  history.write({ kind: 'fault', what: `a replica ${lagMs} ms behind becomes a second master` })
  history.write({ kind: 'branch', why: 'the newest events are lost', mayLoseSince: since - unwrittenMs, epoch })
  await askRedis(replica.port, 'REPLICAOF', 'NO', 'ONE')
  const survivors = await survivorsOn(replica)
  const moved = hubs.slice(1)
  stage.serveFrom(
    replica,
    moved.map((_, index) => index + 1),
  )
  await everyHubKnows({ ...stage, hubs: moved })
  // From here on the old master is ahead of the new one, or behind it: its events are given up, wherever they stand.
  if (aheadMs !== 0) setRedisClock(aheadMs)
  await pause(apartMs)
  // What the new master took in before the last hub came with its losses stays as well.
  const sinceThen = await survivorsOn(replica)
  history.write({
    ...{ kind: 'branch', why: 'the last hub leaves the old master', epoch },
    ...{ mayLoseSince: since - unwrittenMs, losesSince: since },
  })
  stage.serveFrom(replica, [0])
  history.write({ kind: 'heal' })
  await everyHubKnows(stage)
  await crowd.renewed()
  await stillThere(stage, survivors)
  await stillThere(stage, sinceThen)
  await redis.kill()
}

/**
 * Makes the master copy its data from a replica that is behind, and lead again: the same process goes on, at the same address,
 * without the newest events.
 */
export async function rollBack(stage: RedisStage, lagMs: number): Promise<void> {
  const { redis, history, crowd, pause } = stage
  const { port, since } = await serverBehind(stage, lagMs)
  history.write({ kind: 'fault', what: `the master copies its data from a server ${lagMs} ms behind, and leads again` })
  history.write({
    ...{ kind: 'branch', why: 'the newest events are lost' },
    ...{ mayLoseSince: since - unwrittenMs, losesSince: since },
  })
  await askRedis(redis.port, 'REPLICAOF', '127.0.0.1', String(port))
  while (!(await askRedis(redis.port, 'INFO', 'replication')).includes('master_link_status:up')) await pause(20)
  await askRedis(redis.port, 'REPLICAOF', 'NO', 'ONE')
  history.write({ kind: 'heal' })
  await everyHubKnows(stage)
  await crowd.renewed()
}

/**
 * Puts the keys of a while ago back while no hub runs, as an operator does with a backup. The server is the same, and so is
 * its name: nothing that Redis tells of itself has changed.
 */
export async function putKeysBack(stage: RedisStage, lagMs: number): Promise<void> {
  const { redis, hubs, history, crowd } = stage
  const { port, since } = await serverBehind(stage, lagMs)
  history.write({ kind: 'fault', what: `the keys of ${lagMs} ms ago are put back while no hub runs` })
  for (const hub of hubs) await hub.kill()
  history.write({
    ...{ kind: 'branch', why: 'the newest events are lost' },
    ...{ mayLoseSince: since - unwrittenMs, losesSince: since },
  })
  const keysOf = async (server: number) => (await askRedis(server, 'KEYS', '*')).split('\n').filter(Boolean)
  await askRedis(redis.port, 'DEL', ...(await keysOf(redis.port)))
  const target = ['127.0.0.1', String(redis.port), '', '0', '10000']
  await askRedis(port, 'MIGRATE', ...target, 'COPY', 'REPLACE', 'KEYS', ...(await keysOf(port)))
  for (const hub of hubs) await hub.start()
  history.write({ kind: 'heal' })
  await everyHubKnows(stage)
  await crowd.renewed()
}

/** A server that has what the master had a while ago, and since when it is behind. */
async function serverBehind(stage: RedisStage, lagMs: number): Promise<{ port: number; since: number }> {
  const { redis, pause, random } = stage
  const replication = await openFaultProxy({ target: { port: redis.port }, random })
  stage.closing(() => replication.close())
  const settings = { replicaof: `127.0.0.1 ${replication.port}`, 'repl-diskless-sync-delay': 0 }
  const stale = await startRedis({ settings })
  stage.closing(() => stale.remove())
  await replicatedOnce(redis)
  await everyHubKnows(stage)
  replication.reject('silence')
  replication.cutAll('half-open')
  const since = performance.timeOrigin + performance.now()
  await pause(lagMs)
  await askRedis(stale.port, 'REPLICAOF', 'NO', 'ONE')
  return { port: stale.port, since }
}

/** A replica takes over while the master lives on, and of each hub's connections only one finds the new master by itself. */
export async function moveLines(stage: RedisStage, apartMs: number): Promise<void> {
  const { redis, lines, history, crowd, pause, random } = stage
  const replica = await startRedis({ settings: { replicaof: `127.0.0.1 ${redis.port}`, appendfsync: 'always' } })
  stage.closing(() => replica.remove())
  await replicatedOnce(redis)
  await everyHubKnows(stage)
  await pause(apartMs)
  const epoch = (await askRedis(redis.port, 'HGET', '{rejoin}:log', 'epoch')).trim()
  const since = performance.timeOrigin + performance.now()
  history.write({ kind: 'fault', what: 'a replica takes over, and one connection of each hub moves there' })
  history.write({ kind: 'branch', why: 'the newest events may be lost', mayLoseSince: since - unwrittenMs, epoch })
  await askRedis(replica.port, 'REPLICAOF', 'NO', 'ONE')
  stage.serveNewFrom(replica)
  for (const line of lines) [...line.links][Math.floor(random() * line.links.size)]?.cut('reset')
  history.write({ kind: 'heal' })
  await leftByHubs(redis)
  await everyHubKnows(stage)
  await pause(apartMs)
  await crowd.renewed()
  const branches = Number(await askRedis(replica.port, 'LLEN', '{rejoin}:branches'))
  if (branches > mostBranches) throw new Error(`The new master has ${branches} branches: hubs open them without end.`)
  await redis.kill()
}

// One for the log itself, one for the master's first replica, one for the takeover, and one for each hub that saw further.
const mostBranches = 6

/**
 * A hub that still has a connection to the old master may publish there, and has yet to tell the new one what it saw. Hubs leave
 * the old master within an answer to their tail, which takes two seconds at most.
 */
async function leftByHubs(redis: { port: number }): Promise<void> {
  const limit = performance.now() + storedWithinMs
  while ((await askRedis(redis.port, 'CLIENT', 'LIST', 'TYPE', 'normal')).includes(' name=rejoin:')) {
    if (performance.now() > limit) throw new Error('A hub keeps its connection to the old master.')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** While events come, the replica is never quite there; that it has been, once, is enough. */
async function replicatedOnce(redis: { port: number }): Promise<void> {
  while (!(await askRedis(redis.port, 'INFO', 'replication')).includes('state=online')) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Parts one hub from Redis, without a word: all its lines, and new ones; or the lines it has alone. */
export async function partHubs(stage: RedisStage, lengthsMs: readonly number[], apartMs: number): Promise<void> {
  const { lines, history, crowd, pause } = stage
  for (const [index, ms] of lengthsMs.entries()) {
    const victim = index % lines.length
    const line = lines[victim]
    await pause(apartMs)
    history.write({ kind: 'fault', what: `hub ${victim} is cut off from Redis for ${ms} ms` })
    line?.reject('silence')
    line?.cutAll('half-open')
    await withoutHub(stage, victim, ms, () => line?.accept())
    await crowd.renewed()
    history.write({ kind: 'fault', what: `the lines of hub ${victim} are dead` })
    line?.cutAll('half-open')
    history.write({ kind: 'heal' })
    await crowd.renewed()
  }
}

/**
 * Parts one hub from Redis in one direction. While answers do not arrive, what the hub asks for is done all the same; while
 * questions do not arrive, the hub still hears what Redis has to say. What was under way arrives late, as TCP has it.
 */
export async function partOneWay(stage: RedisStage, lengthsMs: readonly number[], apartMs: number): Promise<void> {
  const { lines, history, crowd, pause } = stage
  for (const [index, ms] of lengthsMs.entries()) {
    const victim = index % lines.length
    const line = lines[victim]
    for (const [direction, what] of Object.entries({ down: 'answers', up: 'questions' })) {
      await pause(apartMs)
      history.write({ kind: 'fault', what: `between hub ${victim} and Redis no ${what} arrive for ${ms} ms` })
      if (line) line.toxics = { [direction]: { latencyMs: forever } }
      await withoutHub(stage, victim, ms, () => {
        if (line) line.toxics = {}
      })
      await crowd.renewed()
    }
  }
}

const forever = 1e8

/** A hub that is cut off says so after 10 s, and a load balancer then leads its readers elsewhere until it is well. */
async function withoutHub(stage: RedisStage, victim: number, ms: number, heal: () => void): Promise<void> {
  const isNoticed = ms > noticedAfterMs
  await stage.pause(isNoticed ? noticedAfterMs : ms)
  if (isNoticed) {
    stage.lead(victim, (victim + 1) % stage.hubs.length)
    await stage.pause(ms - noticedAfterMs)
  }
  heal()
  stage.history.write({ kind: 'heal' })
  if (isNoticed) stage.lead(victim, victim)
}

// What a hub waits for its log, and what a load balancer takes between two looks.
const noticedAfterMs = 12_000

/** Steps the clock of one hub. */
export async function stepClocks(stage: RedisStage, stepsMs: readonly number[], apartMs: number): Promise<void> {
  const { hubs, history, crowd, pause } = stage
  for (const aheadMs of stepsMs) {
    history.write({ kind: 'fault', what: `the clock of hub 0 is ${aheadMs} ms ahead` })
    hubs[0]?.running().setClock(aheadMs)
    history.write({ kind: 'heal' })
    await pause(apartMs)
    await crowd.renewed()
  }
}

/** Sets the clock of Redis, by which all hubs date events. */
export async function stepRedisClock(stage: RedisStage, stepsMs: readonly number[], apartMs: number): Promise<void> {
  const { setRedisClock, history, crowd, pause } = stage
  for (const aheadMs of stepsMs) {
    history.write({ kind: 'fault', what: `the clock of Redis is ${aheadMs} ms ahead` })
    setRedisClock(aheadMs)
    history.write({ kind: 'heal' })
    await pause(apartMs)
    await crowd.renewed()
  }
}
