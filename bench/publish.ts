/**
 * Publishing into the embedded log, durable: events per second in process and over HTTP, beside a bare lmdb loop.
 *
 * Method: events of 200 bytes into one channel whose window (10,000 events) is full, so that every append also trims. Every
 * publisher waits for its answer, which comes when its events have been flushed to the disk, before it publishes again.
 *
 * - In process: 256 publishers of single events, through `hub.publish` and, below it, `log.append`.
 * - Bare lmdb: 256 publishers that put one key each with the package's defaults and remove an old one, which is what is
 *   left when there is no order, no window, no tail and no checksum.
 * - Bare Node: `createServer` with a handler that reads the body and answers 201, in a process of its own on core 0; the same 64
 *   connections. What a publish over HTTP costs when nothing becomes of it. It takes turns with the program.
 * - HTTP: `rejoin serve` as a process of its own on core 0, the load client another on core 1 (`taskset`); 64 connections
 *   with one event per request, then 16 with batches of 100. Nobody reads.
 *
 * A warm-up that fills the window, then the interval; in process the median of the runs.
 *
 * How it could mislead: everything depends on how long the disk takes to flush, which is printed; with a slow one, more
 * publishers at a time are the only way to these rates. A disk that lies about flushing is fast. With readers, encoding
 * and delivery take their share of the same core. In process the publishers share the core with the hub.
 */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHub, systemEnvironment } from '@rejoin/hub'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { open as openLmdb } from 'lmdb'
import type { Published, PublisherCommands, PublishRun } from './load/publishers.ts'
import { median } from './measure.ts'
import { numbersFrom } from './options.ts'
import { cores } from './processes/cores.ts'
import { startRemote } from './processes/remote.ts'
import { cpuMs } from './processes/usage.ts'
import { report } from './report.ts'
import type { BarePostCommands } from './servers/bare-post.ts'
import { type RunningProgram, startProgram } from './subjects/program.ts'

const { publishers, seconds, runs } = numbersFrom({ publishers: 256, seconds: 3, runs: 3 })
const eventBytes = 200
const maxEvents = 10_000
const text = 'x'.repeat(eventBytes)
const folders: string[] = []

type Publish = () => Promise<unknown>
interface Rate {
  readonly what: string
  readonly perSecond: number
  readonly microsPerEvent: number
}

type Shape = Pick<PublishRun, 'connections' | 'batch'>
type HttpRate = Published & { readonly what: string; readonly microsPerEvent: number }

const rates: Rate[] = []
for (let run = 0; run < runs; run += 1) {
  rates.push(await bareLmdb(), await throughLog(), await throughHub())
}
const inProcess = (what: string) => median(rates.filter((rate) => rate.what === what).map((rate) => rate.perSecond))
const singles: HttpRate[] = []
const bares: HttpRate[] = []
for (let run = 0; run < runs; run += 1) {
  bares.push(await overBareNode({ connections: 64, batch: 1 }))
  singles.push(await overHttp({ connections: 64, batch: 1 }))
}
const single = medianOf(singles)
const bare = medianOf(bares)
const batched = await overHttp({ connections: 16, batch: 100 })
const flushMs = medianFlushMs()
for (const folder of folders) rmSync(folder, { recursive: true })

report({
  bench: 'publish',
  inputs: { publishers, eventBytes, maxEvents, seconds, runs, 'flush of 64 KB, median': `${flushMs.toFixed(2)} ms` },
  figures: [
    { what: 'hub.publish, durable', value: inProcess('hub.publish'), unit: 'events/s', atLeast: 60_000 },
    { what: 'log.append, durable', value: inProcess('log.append'), unit: 'events/s' },
    { what: 'bare lmdb', value: inProcess('bare lmdb'), unit: 'events/s' },
    {
      what: 'hub.publish, to bare lmdb',
      value: inProcess('hub.publish') / inProcess('bare lmdb'),
      unit: '×',
      atLeast: 0.8,
    },
    {
      what: 'log.append, to bare lmdb',
      value: inProcess('log.append') / inProcess('bare lmdb'),
      unit: '×',
    },
    {
      what: 'HTTP, single events, to a bare Node handler',
      value: single.eventsPerSecond / bare.eventsPerSecond,
      unit: '×',
      atLeast: 0.6,
    },
    {
      what: 'the same, processor time',
      value: single.microsPerEvent / bare.microsPerEvent,
      unit: '×',
    },
    { what: 'HTTP, single events, 64 connections', value: single.eventsPerSecond, unit: 'events/s', atLeast: 10_000 },
    { what: 'HTTP, batches of 100', value: batched.eventsPerSecond, unit: 'events/s', atLeast: 150_000 },
  ],
  details: [
    ...rates.map(({ what, perSecond, microsPerEvent }) => ({
      what,
      'events/s': perSecond,
      'CPU µs/event': microsPerEvent,
      'p50 ms': '',
      'p99 ms': '',
    })),
    ...[...bares, ...singles, batched].map(({ what, eventsPerSecond, microsPerEvent, p50Ms, p99Ms }) => ({
      what,
      'events/s': eventsPerSecond,
      'CPU µs/event': microsPerEvent,
      'p50 ms': p50Ms,
      'p99 ms': p99Ms,
    })),
  ],
})

async function throughHub(): Promise<Rate> {
  const hub = await createHub({ log: lmdbLog(newFolder(), { window: { maxEvents } }) })
  const rate = await measure('hub.publish', () => hub.publish('bench', { type: 'tick', text }))
  await hub.close()
  return rate
}

async function throughLog(): Promise<Rate> {
  const log = await lmdbLog(newFolder(), { window: { maxEvents } }).open(systemEnvironment)
  const entry = { channel: 'bench', type: 'tick', data: text }
  const rate = await measure('log.append', () => log.append([entry], { token: 'bench' }))
  await log.close()
  return rate
}

async function bareLmdb(): Promise<Rate> {
  const database = openLmdb<Buffer, number>(join(newFolder(), 'bare.mdb'), { encoding: 'binary' })
  const value = Buffer.from(text)
  let puts = 0
  const rate = await measure('bare lmdb', () => {
    puts += 1
    if (puts > maxEvents) void database.remove(puts - maxEvents)
    return database.put(puts, value)
  })
  await database.close()
  return rate
}

/** All publishers at once, each waiting for its own answer, after the window has been filled. */
async function measure(what: string, publish: Publish): Promise<Rate> {
  let events = 0
  let until = Number.POSITIVE_INFINITY
  let stopAfter = maxEvents + 10 * publishers
  const publisher = async () => {
    while (events < stopAfter && performance.now() < until) {
      await publish()
      events += 1
    }
  }
  const all = () => Promise.all(Array.from({ length: publishers }, publisher))
  await all()
  events = 0
  stopAfter = Number.POSITIVE_INFINITY
  const started = performance.now()
  const usage = process.cpuUsage()
  until = started + seconds * 1000
  await all()
  const { user, system } = process.cpuUsage(usage)
  return {
    what,
    perSecond: events / ((performance.now() - started) / 1000),
    microsPerEvent: (user + system) / events,
  }
}

async function overBareNode(shape: Shape): Promise<HttpRate> {
  const server = startRemote<BarePostCommands>(new URL('./servers/bare-post.js', import.meta.url), {
    core: cores.server,
  })
  const port = await server.call('listen', undefined)
  return publishTo('bare Node', { pid: server.pid, port, stop: server.stop }, shape)
}

async function overHttp(shape: Shape): Promise<HttpRate> {
  return publishTo('HTTP', await startProgram(newFolder()), shape)
}

async function publishTo(what: string, program: RunningProgram, shape: Shape): Promise<HttpRate> {
  const publisher = new URL('./load/publishers.js', import.meta.url)
  const load = startRemote<PublisherCommands>(publisher, { core: cores.load })
  const ms = seconds * 1000
  const before = cpuMs([program.pid])
  const published = await load.call('publish', { port: program.port, ...shape, eventBytes, warmUpMs: ms, ms })
  const cpu = cpuMs([program.pid]) - before
  await load.stop()
  await program.stop()
  // Processor time is that of the warm-up as well, which is as long.
  const microsPerEvent = (cpu * 1000) / (2 * published.eventsPerSecond * seconds)
  return { what: `${what}, ${shape.connections} × ${shape.batch}`, ...published, microsPerEvent }
}

function medianOf(measured: readonly HttpRate[]): Pick<HttpRate, 'eventsPerSecond' | 'microsPerEvent'> {
  return {
    eventsPerSecond: median(measured.map(({ eventsPerSecond }) => eventsPerSecond)),
    microsPerEvent: median(measured.map(({ microsPerEvent }) => microsPerEvent)),
  }
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rejoin-bench-'))
  folders.push(folder)
  return folder
}

function medianFlushMs(): number {
  const file = openSync(join(newFolder(), 'flush'), 'w')
  const bytes = Buffer.alloc(64 * 1024)
  const took = Array.from({ length: 100 }, () => {
    const started = performance.now()
    writeSync(file, bytes, 0, bytes.length, 0)
    fdatasyncSync(file)
    return performance.now() - started
  })
  closeSync(file)
  return median(took)
}
