/**
 * Two hubs on one Redis with an append-only file: events per second from one, and when they arrive at the other.
 *
 * Method: redis-server 7 with appendfsync everysec, started for this. This process is the first hub, with 256 publishers of
 * single events of 200 bytes that wait for their answers; one event in a hundred goes to a channel that the second hub, a
 * process of its own, has a reader of. All channels have full windows, so that every append also trims.
 *
 * - Rate: as many as are answered, without a second hub.
 * - Delay: 21,000 events/s offered, by the clock, what is due every millisecond; how many are answered, and from the publish
 *   until the reader of the second hub has the event, in the same seconds. Then once more while Redis rewrites its file.
 * - Catching up: the second hub's process stands still while a million events are appended, and goes on: how long until its
 *   reader has the last one, and the longest turn of its event loop until then, in which no other reader is served.
 *
 * How it could mislead: on two cores, Redis and both hubs share what they would have to themselves in a network, so the rate
 * is less than theirs and the delay is more; there is no network in it. A disk that is busy slows an append-only file. Redis
 * rewrites that file only where it is told to here. By itself it would at times that differ from run to run, with a process
 * that takes a core for a second or so, on a machine that has two; a run would say which of both it has met.
 */
import { createHub } from '@rejoin/hub'
import { redisLog } from '@rejoin/hub/redis'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import type { FollowerCommands } from './load/redis-follower.ts'
import { numbersFrom } from './options.ts'
import { cores } from './processes/cores.ts'
import { startRedis } from './processes/redis.ts'
import { startRemote } from './processes/remote.ts'
import { coreMs, cpuMs } from './processes/usage.ts'
import { report } from './report.ts'

const { publishers, seconds, rate, missed } = numbersFrom({
  publishers: 256,
  seconds: 5,
  rate: 21_000,
  missed: 1_000_000,
})
const port = 16_379
const redis = await startRedis(port)

const feedBytes = 1024 ** 3
const options = { feed: { maxBytes: feedBytes, maxAgeMs: 600_000 } }
const clients = {
  redis: () => createClient({ socket: { port } }),
  ioredis: () => new Redis({ port, lazyConnect: true }),
}
const mostUnderWay = 9000
const padding = 'x'.repeat(185)
let sent = 0

const rates = []
for (const [client, create] of Object.entries(clients)) {
  const hub = await createHub({ log: redisLog(create(), options) })
  await publishFor(hub, 1000 * seconds)
  const before = cpuMs([redis.pid])
  const usage = process.cpuUsage()
  const { events, ms } = await publishFor(hub, 1000 * seconds)
  const { user, system } = process.cpuUsage(usage)
  await hub.close()
  rates.push({
    client,
    'events/s': events / (ms / 1000),
    'CPU µs/event, Redis': ((cpuMs([redis.pid]) - before) * 1000) / events,
    'CPU µs/event, hub': (user + system) / events,
  })
}

const hub = await createHub({ log: redisLog(clients.redis(), options) })
const follower = startRemote<FollowerCommands>(new URL('./load/redis-follower.js', import.meta.url), {
  core: cores.load,
})
await follower.call('open', { port, feedBytes })
await publishAt(hub, rate, 2000)
const paced = await publishWatched()
const admin = await clients.redis().connect()
await admin.sendCommand(['BGREWRITEAOF'])
const rewriting = await publishWatched()
await admin.close()

process.kill(follower.pid, 'SIGSTOP')
const stood = performance.now()
for (let left = missed; left > 0; left -= 1000) {
  await hub.publishBatch(Array.from({ length: 1000 }, () => nextEvent()))
}
const last = `${Date.now()} the last`
await hub.publish('watched', { type: 'tick', text: last })
const awayMs = performance.now() - stood
process.kill(follower.pid, 'SIGCONT')
const caughtUp = await follower.call('catchUp', { last })
await follower.stop()
await hub.close()
redis.remove()

const best = Math.max(...rates.map((measured) => measured['events/s']))
report({
  bench: 'redis',
  inputs: { publishers, eventBytes: 200, seconds, rate, missed, appendfsync: 'everysec' },
  figures: [
    { what: 'hub.publish', value: best, unit: 'events/s', atLeast: 20_000 },
    { what: `offered ${rate} events/s, published`, value: paced.perSecond, unit: 'events/s', atLeast: 20_000 },
    { what: 'p99 meanwhile, from publish to a reader of another hub', value: paced.p99Ms, unit: 'ms', atMost: 50 },
    { what: 'published while Redis rewrites its file', value: rewriting.perSecond, unit: 'events/s', atLeast: 20_000 },
    { what: 'p99 meanwhile', value: rewriting.p99Ms, unit: 'ms', atMost: 50 },
    { what: `catching up ${missed} events`, value: caughtUp.ms / 1000, unit: 's', atMost: 10 },
    { what: 'longest turn meanwhile', value: caughtUp.longestTurnMs, unit: 'ms', atMost: 250 },
  ],
  details: [
    ...rates.map((measured) => ({
      ...measured,
      'second hub': '',
      'p50 ms': '',
      'p99 ms': '',
      'others busy': '',
      'away s': '',
    })),
    ...Object.entries({ 'with a second hub': paced, 'and a rewrite': rewriting }).map(([client, watched]) => ({
      client,
      'events/s': watched.perSecond,
      'CPU µs/event, Redis': watched.ofRedis,
      'CPU µs/event, hub': watched.ofHub,
      'second hub': watched.ofSecond,
      'p50 ms': watched.p50Ms,
      'p99 ms': watched.p99Ms,
      'others busy': watched.othersBusy,
      'away s': client === 'with a second hub' ? awayMs / 1000 : '',
    })),
  ],
})

function nextEvent() {
  sent += 1
  const channel = sent % 100 === 0 ? 'watched' : `c/${sent % 100}`
  return { channel, type: 'tick', text: `${Date.now()} ${padding}` }
}

type PublishingHub = typeof hub

async function publishFor(to: PublishingHub, ms: number): Promise<{ events: number; ms: number }> {
  const started = performance.now()
  let events = 0
  const publisher = async () => {
    while (performance.now() - started < ms) {
      const event = nextEvent()
      await to.publish(event.channel, event)
      events += 1
    }
  }
  await Promise.all(Array.from({ length: publishers }, publisher))
  return { events, ms: performance.now() - started }
}

/** At the rate offered, with what the reader of the second hub has seen of it, and what an event takes of each process. */
async function publishWatched(): Promise<Watched> {
  const pids = { redis: redis.pid, hub: process.pid, second: follower.pid }
  const used = () => Object.values(pids).map((pid) => cpuMs([pid]))
  const busy = () => coreMs(cores.server) + coreMs(cores.load) - cpuMs(Object.values(pids))
  await follower.call('reset', undefined)
  const [before, busyBefore, started] = [used(), busy(), performance.now()]
  const { events, perSecond } = await publishAt(hub, rate, 1000 * seconds)
  // The last ones are on their way.
  await new Promise((resolve) => setTimeout(resolve, 500))
  const [ofRedis = 0, ofHub = 0, ofSecond = 0] = used().map((ms, index) => ((ms - before[index]!) * 1000) / events)
  const othersBusy = (busy() - busyBefore) / (performance.now() - started) / 2
  const { p50Ms, p99Ms } = await follower.call('delays', undefined)
  return { perSecond, p50Ms, p99Ms, ofRedis, ofHub, ofSecond, othersBusy }
}

interface Watched {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Processor time of an event, in µs. */
  readonly ofRedis: number
  /** With that of the load, which is in the same process. */
  readonly ofHub: number
  readonly ofSecond: number
  /** What all other processes took of both cores, that of a rewrite among them. */
  readonly othersBusy: number
}

/**
 * What is due by the clock is published, whether or not what came before has been answered; up to what a hub lets wait for
 * Redis, so that a rate that cannot be had shows as a lower one.
 */
async function publishAt(
  to: PublishingHub,
  perSecond: number,
  ms: number,
): Promise<{ events: number; perSecond: number }> {
  const started = performance.now()
  let events = 0
  let answered = 0
  let allAnswered: () => void = () => undefined
  // One function for all: what the load itself takes of this process, it takes of the hub's time.
  const onAnswer = () => {
    answered += 1
    if (answered === events) allAnswered()
  }
  while (performance.now() - started < ms) {
    const due = ((performance.now() - started) * perSecond) / 1000
    for (; events < due && events - answered < mostUnderWay; events += 1) {
      const event = nextEvent()
      void to.publish(event.channel, event).then(onAnswer)
    }
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  await new Promise<void>((resolve) => {
    allAnswered = resolve
    if (answered === events) resolve()
  })
  return { events, perSecond: events / ((performance.now() - started) / 1000) }
}
