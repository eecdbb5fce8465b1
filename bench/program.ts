/**
 * What access rules, limits and metrics cost: the program with all of them beside a bare hub, in fan-out and publishing.
 *
 * Method: two servers take turns, each run with new processes, on core 0, with a load client on core 1. Both keep their
 * events in memory. The bare one is `nodeHandler(hub)` on Node's server; the other is what `rejoin serve` runs, with an API
 * key for publishers, rights for anonymous readers, every limit set, metrics and the admin API.
 *
 * - Fan-out: 1,000 readers of one channel, events of 200 bytes, published from inside at two rates: 2,500 events/s for
 *   deliveries per second, and 50 events/s for the processor time of a delivery.
 * - Publishing: 64 connections with one event per request, then 16 with batches of 100, as fast as they are answered.
 *
 * The figures are medians of the runs, as ratios of the two. On a machine that does something else besides, processor time
 * is the one to go by.
 *
 * How it could mislead: in memory an append costs next to nothing, so that what a request costs besides weighs more than it
 * does with a log on disk. A token that has to be verified anew costs more than a key, once per token. Nobody reads
 * `/metrics` meanwhile, and no lines are printed.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Measured } from './load/client.ts'
import type { Published, PublisherCommands, PublishRun } from './load/publishers.ts'
import { median } from './measure.ts'
import { numbersFrom } from './options.ts'
import { cores } from './processes/cores.ts'
import { startRemote } from './processes/remote.ts'
import { cpuMs } from './processes/usage.ts'
import { report } from './report.ts'
import { programToken } from './servers/program-token.ts'
import { startNode } from './subjects/node.ts'
import { startLoad } from './subjects/subject.ts'

const { readers, seconds, runs } = numbersFrom({ readers: 1000, seconds: 2, runs: 5 })
const eventBytes = 200
const warmUpMs = 1000
// A server that is asked for batches gets two thousand requests a second, too few to have its code compiled in one.
const publishWarmUpMs = 4000
const rate = 2500
const quietRate = 50

const servers = ['rejoin', 'rejoin, program'] as const
type Server = (typeof servers)[number]
const shapes = [
  { connections: 64, batch: 1 },
  { connections: 16, batch: 100 },
] as const

const deliveries: (Measured & { readonly server: Server; readonly offered: number })[] = []
const publishes: (Published & { readonly server: Server; readonly batch: number; readonly microsPerEvent: number })[] =
  []

for (let run = 0; run < runs; run += 1) {
  for (const server of servers) {
    await fanOut(server)
    for (const shape of shapes) await publish(server, shape)
  }
}

report({
  bench: 'program',
  inputs: { readers, eventBytes, seconds, runs, warmUpMs, publishWarmUpMs },
  figures: [
    { what: `deliveries/s at ${rate} events/s`, value: ratio(perSecond), unit: '×', atLeast: 0.9 },
    { what: `CPU per delivery at ${quietRate} events/s`, value: ratio(cpu), unit: '×', atMost: 1.1 },
    ...shapes.flatMap(({ batch }) => [
      { what: `events/s, ${batch} per request`, value: ratio(published(batch)), unit: '×', atLeast: 0.9 },
      { what: `CPU per event, ${batch} per request`, value: ratio(publishCpu(batch)), unit: '×' },
    ]),
  ],
  details: [
    ...deliveries.map((step) => ({
      server: step.server,
      what: `fan-out, ${step.offered}/s`,
      'per second': step.perSecond,
      'p99 ms': step.p99Ms,
      'CPU µs': step.serverCpuMicrosPerDelivery,
    })),
    ...publishes.map((step) => ({
      server: step.server,
      what: `publishing, ${step.batch} per request`,
      'per second': step.eventsPerSecond,
      'p99 ms': step.p99Ms,
      'CPU µs': step.microsPerEvent,
    })),
  ],
})

async function fanOut(server: Server): Promise<void> {
  const load = startLoad()
  const subject = await startNode(server)
  const { port, tls, pids, readPath: path } = subject
  await load.call('connect', { port, tls, count: readers, path })
  for (const offered of [quietRate, rate]) {
    await subject.publish({ perSecond: offered, eventBytes, readers })
    await sleep(warmUpMs)
    const measured = await load.call('measure', { ms: seconds * 1000, serverPids: pids })
    deliveries.push({ server, offered, ...measured })
    await subject.stopPublishing()
    await load.call('settle', undefined)
  }
  await subject.stop()
  await load.stop()
}

async function publish(server: Server, shape: Pick<PublishRun, 'connections' | 'batch'>): Promise<void> {
  const subject = await startNode(server)
  const load = startRemote<PublisherCommands>(new URL('./load/publishers.js', import.meta.url), { core: cores.load })
  const token = programToken
  const run = { port: subject.port, ...shape, eventBytes, token, warmUpMs: publishWarmUpMs, ms: seconds * 1000 }
  const before = cpuMs(subject.pids)
  const done = await load.call('publish', run)
  const microsPerEvent = ((cpuMs(subject.pids) - before) * 1000) / done.events
  publishes.push({ server, batch: shape.batch, microsPerEvent, ...done })
  await load.stop()
  await subject.stop()
}

function perSecond(server: Server): number {
  return median(
    deliveries.filter((step) => step.server === server && step.offered === rate).map((step) => step.perSecond),
  )
}

function cpu(server: Server): number {
  const quiet = deliveries.filter((step) => step.server === server && step.offered === quietRate)
  return median(quiet.map((step) => step.serverCpuMicrosPerDelivery))
}

function published(batch: number): (server: Server) => number {
  return (server) => median(publishesOf(server, batch).map((step) => step.eventsPerSecond))
}

function publishCpu(batch: number): (server: Server) => number {
  return (server) => median(publishesOf(server, batch).map((step) => step.microsPerEvent))
}

function publishesOf(server: Server, batch: number): typeof publishes {
  return publishes.filter((step) => step.server === server && step.batch === batch)
}

/** Of the program to the bare hub. */
function ratio(figure: (server: Server) => number): number {
  return figure('rejoin, program') / figure('rejoin')
}
