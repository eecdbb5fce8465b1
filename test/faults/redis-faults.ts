import { openFaultProxy } from './fault-proxy.ts'
import { askRedis, startRedis } from './redis-server.ts'
import type { RedisStage } from './redis-stage.ts'

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
      await crowd.renewed()
    }
  }
}

/** Cuts the replica off, lets the master go on for a while, and makes the replica the master. */
export async function promoteReplica(stage: RedisStage, lagMs: number): Promise<void> {
  const { redis, history, crowd, pause, random } = stage
  const replication = await openFaultProxy({ target: { port: redis.port }, random })
  stage.closing(() => replication.close())
  const replica = await startRedis({ settings: { replicaof: `127.0.0.1 ${replication.port}` } })
  stage.closing(() => replica.remove())
  await replicatedOnce(redis)
  replication.refuse('silence')
  replication.cutAll('half-open')
  await pause(lagMs)
  history.write({ kind: 'fault', what: `a replica ${lagMs} ms behind becomes the master` })
  history.write({ kind: 'branch', why: 'the newest events are lost' })
  await redis.kill()
  await askRedis(replica.port, 'REPLICAOF', 'NO', 'ONE')
  stage.serveFrom(replica)
  history.write({ kind: 'heal' })
  await crowd.renewed()
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
    const line = lines[index % lines.length]
    await pause(apartMs)
    history.write({ kind: 'fault', what: `hub ${index % lines.length} is cut off from Redis for ${ms} ms` })
    line?.refuse('silence')
    line?.cutAll('half-open')
    await pause(ms)
    line?.accept()
    history.write({ kind: 'heal' })
    await crowd.renewed()
    history.write({ kind: 'fault', what: `the lines of hub ${index % lines.length} are dead` })
    line?.cutAll('half-open')
    history.write({ kind: 'heal' })
    await crowd.renewed()
  }
}

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
