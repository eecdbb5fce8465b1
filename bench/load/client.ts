import { setTimeout as sleep } from 'node:timers/promises'
import { answerCalls } from '../processes/commands.ts'
import { cores } from '../processes/cores.ts'
import { coreMs, cpuMs, rssBytes } from '../processes/usage.ts'
import { nowMicros } from '../traffic/event.ts'
import { type HttpPublishing, publishOverHttp } from './http-publisher.ts'
import { openReaders, type Readers, type ReadersOptions } from './readers.ts'
import type { LatencySummary } from './samples.ts'

export interface Measuring {
  readonly ms: number
  /** The processes of the server, whose time and memory are counted. */
  readonly serverPids: readonly number[]
}

export interface Measured extends LatencySummary {
  readonly seconds: number
  readonly deliveries: number
  readonly perSecond: number
  readonly bytes: number
  readonly serverCpuMicrosPerDelivery: number
  /** Part of one core. */
  readonly serverBusy: number
  readonly clientBusy: number
  /** What neither the server nor the load client used of their cores, but somebody else. Much of it spoils a latency. */
  readonly othersBusy: number
  readonly serverPeakRss: number
}

const sampleRssEveryMs = 100
// Far under the time they stalled, far over the latency of a hub under load.
const caughtUpMs = 2000

let readers: Readers
let stalled: Readers
let publisher: { stop(): void } | undefined

const commands = {
  async connect(options: ReadersOptions): Promise<void> {
    readers = await openReaders(options)
  },
  measure,
  clearLatency: (): void => readers.clearLatency(),
  latency: (): LatencySummary => readers.latency(),
  publish(publishing: HttpPublishing): void {
    publisher = publishOverHttp(publishing)
  },
  stopPublishing(): void {
    publisher?.stop()
  },
  /** Waits until nothing arrives any more: what was published has been delivered. */
  async settle(): Promise<void> {
    for (let before = -1, now = 0; before !== now; ) {
      before = now
      await sleep(200)
      now = readers.totals().bytes
    }
  },
  /** Connects readers that stop reading at once. They are counted in no measurement. */
  async connectStalled(options: ReadersOptions): Promise<void> {
    stalled = await openReaders(options)
    stalled.stall()
  },
  /** Lets the stalled readers read on until what they get is new, and hang up. */
  async catchUp(): Promise<void> {
    stalled.resume()
    for (let oldestMs = Number.POSITIVE_INFINITY; !(oldestMs < caughtUpMs); oldestMs = stalled.latency().maxMs) {
      stalled.clearLatency()
      await sleep(250)
    }
    stalled.close()
  },
}

export type LoadCommands = typeof commands

answerCalls(commands)

/** Counts for a while. Everything is read at its two ends by this process, so all figures are of the same interval. */
async function measure({ ms, serverPids }: Measuring): Promise<Measured> {
  readers.clearLatency()
  let peakRss = rssBytes(serverPids)
  const watch = setInterval(() => {
    peakRss = Math.max(peakRss, rssBytes(serverPids))
  }, sampleRssEveryMs)
  const before = reading(serverPids)
  await sleep(ms)
  const after = reading(serverPids)
  clearInterval(watch)

  const micros = after.at - before.at
  const share = (ms: number) => (ms * 1000) / micros
  const serverBusy = share(after.serverCpuMs - before.serverCpuMs)
  const clientBusy = share(after.clientCpuMs - before.clientCpuMs)
  const deliveries = after.events - before.events
  const serverMicros = (after.serverCpuMs - before.serverCpuMs) * 1000
  return {
    seconds: micros / 1_000_000,
    deliveries,
    perSecond: deliveries / (micros / 1_000_000),
    bytes: after.bytes - before.bytes,
    serverCpuMicrosPerDelivery: serverMicros / deliveries,
    serverBusy,
    clientBusy,
    othersBusy: Math.max(0, share(after.coresMs - before.coresMs) - serverBusy - clientBusy),
    serverPeakRss: Math.max(peakRss, rssBytes(serverPids)),
    ...readers.latency(),
  }
}

function reading(serverPids: readonly number[]) {
  return {
    at: nowMicros(),
    ...readers.totals(),
    serverCpuMs: cpuMs(serverPids),
    clientCpuMs: cpuMs([process.pid]),
    coresMs: coreMs(cores.server) + coreMs(cores.load),
  }
}
