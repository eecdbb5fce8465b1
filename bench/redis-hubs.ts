/**
 * What one Redis can carry for 2, 5 and 10 hubs: the processor time that an event costs it, and the rate at which that is all of a core.
 *
 * Method: redis-server 7 with appendfsync everysec, started for this. This process is the first hub, the others are processes of
 * their own that follow the log, each with a reader of one event in a hundred. Events of 200 bytes to 100 channels with full
 * windows come in bursts of single publishes, 75 every 10 ms, so that a call has as many of them as at a full rate, and so that
 * two cores have time for all the hubs. Measured is what the Redis process has used, in turn for each number of hubs, several
 * times; the median counts. A Redis runs its commands on one core, so a second divided by that is the most it can take.
 *
 * How it could mislead: the rate itself is computed, not reached, because on two cores ten hubs would need more than there is.
 * At that rate Redis has no time left, and publishes wait: plan for two thirds of it. More events in a call cost less each, fewer
 * cost more: a hub that publishes one event at a time costs Redis about three times as much for each. There is no network in it.
 */
import { createHub } from '@rejoin/hub'
import { redisLog } from '@rejoin/hub/redis'
import { createClient } from 'redis'
import type { FollowerCommands } from './load/redis-follower.ts'
import { numbersFrom } from './options.ts'
import { cores } from './processes/cores.ts'
import { startRedis } from './processes/redis.ts'
import { startRemote } from './processes/remote.ts'
import { cpuMs } from './processes/usage.ts'
import { report } from './report.ts'

const { seconds, burst, everyMs, rounds } = numbersFrom({ seconds: 4, burst: 75, everyMs: 10, rounds: 3 })
const counts = [2, 5, 10]
const port = 16_380
const redis = await startRedis(port)

const feedBytes = 256 * 1024 ** 2
const hub = await createHub({ log: redisLog(createClient({ socket: { port } }), { feed: { maxBytes: feedBytes } }) })
const padding = 'x'.repeat(185)
let sent = 0
await publishFor(30_000)

const measured = new Map<number, Measured[]>(counts.map((count) => [count, []]))
for (let round = 0; round < rounds; round += 1) {
  for (const count of counts) measured.get(count)?.push(await measure(count))
}
await hub.close()
redis.remove()

const medians = counts.map((count) => ({ hubs: count, ...medianOf(measured.get(count) as Measured[]) }))
const { each, base } = fitted(medians.map(({ hubs, ofRedis }) => [hubs, ofRedis]))
report({
  bench: 'redis-hubs',
  inputs: { seconds, burst, everyMs, rounds, eventBytes: 200, appendfsync: 'everysec' },
  figures: [
    ...medians.map(({ hubs, ofRedis }) => ({
      what: `${hubs} hubs: most that Redis can take`,
      value: 1e6 / ofRedis,
      unit: 'events/s',
    })),
    { what: 'an event costs Redis', value: base, unit: 'µs' },
    { what: 'and for each hub', value: each, unit: 'µs' },
  ],
  details: counts.flatMap((count) =>
    (measured.get(count) as Measured[]).map(({ perSecond, ofRedis, p99Ms }) => ({
      ...{ hubs: count, 'published/s': perSecond, 'CPU µs/event, Redis': ofRedis, 'p99 ms to a reader': p99Ms },
    })),
  ),
})

interface Measured {
  readonly perSecond: number
  /** Processor time of an event, in µs. */
  readonly ofRedis: number
  /** From a publish to a reader of the hub that is furthest behind. */
  readonly p99Ms: number
}

async function measure(count: number): Promise<Measured> {
  const followers = Array.from({ length: count - 1 }, (_, index) =>
    startRemote<FollowerCommands>(new URL('./load/redis-follower.js', import.meta.url), {
      core: index % 2 === 0 ? cores.load : cores.server,
    }),
  )
  await Promise.all(followers.map((follower) => follower.call('open', { port, feedBytes })))
  await publishFor(1000)
  await Promise.all(followers.map((follower) => follower.call('reset', undefined)))
  const [before, started] = [cpuMs([redis.pid]), performance.now()]
  const events = await publishFor(1000 * seconds)
  const ms = performance.now() - started
  // The last ones are on their way.
  await new Promise((resolve) => setTimeout(resolve, 300))
  const ofRedis = ((cpuMs([redis.pid]) - before) * 1000) / events
  const delays = await Promise.all(followers.map((follower) => follower.call('delays', undefined)))
  await Promise.all(followers.map((follower) => follower.stop()))
  return { perSecond: events / (ms / 1000), ofRedis, p99Ms: Math.max(...delays.map(({ p99Ms }) => p99Ms)) }
}

/** A burst every so often; one that is not answered yet holds up the next. */
async function publishFor(ms: number): Promise<number> {
  const started = performance.now()
  let events = 0
  for (let due = started; performance.now() - started < ms; due += everyMs) {
    await Promise.all(
      Array.from({ length: burst }, () => {
        sent += 1
        events += 1
        const channel = sent % 100 === 0 ? 'watched' : `c/${sent % 100}`
        return hub.publish(channel, { type: 'tick', text: `${Date.now()} ${padding}` })
      }),
    )
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, due + everyMs - performance.now())))
  }
  return events
}

function medianOf(found: readonly Measured[]): Measured {
  return found.toSorted((a, b) => a.ofRedis - b.ofRedis)[Math.floor(found.length / 2)] as Measured
}

/** The straight line nearest to the points. */
function fitted(points: readonly (readonly [number, number])[]): { each: number; base: number } {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const [x, y] = [mean(points.map(([hubs]) => hubs)), mean(points.map(([, cost]) => cost))]
  const above = points.reduce((sum, [hubs, cost]) => sum + (hubs - x) * (cost - y), 0)
  const each = above / points.reduce((sum, [hubs]) => sum + (hubs - x) ** 2, 0)
  return { each, base: y - each * x }
}
