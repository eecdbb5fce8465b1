/**
 * What a dashboard that somebody looks at costs a hub with 10,000 connections and 1,000 events/s, and how smooth it is.
 *
 * Method: the program with access rules, limits, metrics and the admin API on core 0; on core 1 a load client that holds
 * 10,000 raw sockets, and a headless Chromium with the dashboard. Events of 200 bytes go to 500 channels in turn, each read
 * by 20, so that there are 20,000 deliveries a second. Intervals without and with the page take turns in the same processes;
 * the figure is the median of the differences between neighbours, so that what drifts falls out. Processor time is that of
 * the server's process. Frames are counted in the page by `requestAnimationFrame`, and once in an empty page, for what the
 * browser can do here at most.
 *
 * How it could mislead: the hub computes its figures each second whether or not somebody looks, because the last ten minutes
 * are to be there for whoever comes. That takes 5 ms of 10,000 connections, half a per cent of a core, and is in both kinds
 * of interval. The page has the history of this run, some minutes, and not yet the ten that it can get to. Chromium draws
 * without a graphics card and shares its core with the load client. On a machine that does something else besides, which
 * `others %` shows beyond the few per cent of Chromium, neighbouring intervals differ by more than what is looked for; with
 * `--perSecond 10` the hub does little else, and they do not.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Frames, OnlookerCommands } from './load/onlooker.ts'
import { median } from './measure.ts'
import { numbersFrom } from './options.ts'
import { cores } from './processes/cores.ts'
import { startRemote } from './processes/remote.ts'
import { report } from './report.ts'
import { programAdminToken } from './servers/program-token.ts'
import { startNode } from './subjects/node.ts'
import { startLoad } from './subjects/subject.ts'

const { connections, perSecond, channels, seconds, runs } = numbersFrom({
  ...{ connections: 10_000, perSecond: 1000, channels: 500, seconds: 12, runs: 6 },
})
const eventBytes = 200
const settleMs = 3000

interface Interval {
  readonly page: 'closed' | 'open'
  /** Of one core. */
  readonly hubPercent: number
  readonly deliveries: number
  readonly clientPercent: number
  readonly othersPercent: number
  readonly frames?: Frames
}

const load = startLoad()
const onlooker = startRemote<OnlookerCommands>(new URL('./load/onlooker.js', import.meta.url), { core: cores.load })
const hub = await startNode('rejoin, program')
await load.call('connect', {
  port: hub.port,
  tls: false,
  count: connections,
  path: '/events/turn/{n}',
  numbers: channels,
})
await onlooker.call('start', undefined)
await hub.publish({ perSecond, eventBytes, channels, readers: connections })
await sleep(2 * settleMs)

await onlooker.call('openEmpty', undefined)
const atMost = await onlooker.call('frames', { ms: settleMs })
await onlooker.call('close', undefined)

const intervals: Interval[] = []
for (let run = 0; run < runs; run += 1) {
  await sleep(settleMs)
  intervals.push({ page: 'closed', ...(await interval()) })
  await onlooker.call('open', { port: hub.port, token: programAdminToken })
  await sleep(settleMs)
  const [measured, frames] = await Promise.all([interval(), onlooker.call('frames', { ms: seconds * 1000 })])
  intervals.push({ page: 'open', ...measured, frames })
  await onlooker.call('close', undefined)
}

await onlooker.call('stop', undefined)
await Promise.all([onlooker.stop(), load.stop(), hub.stop()])

const closed = intervals.filter(({ page }) => page === 'closed')
const open = intervals.filter(({ page }) => page === 'open')
const differences = open.map(({ hubPercent }, index) => hubPercent - closed[index]!.hubPercent)
const frames = open.map((each) => each.frames!)

report({
  bench: 'dashboard',
  inputs: { connections, perSecond, channels, eventBytes, seconds, runs },
  figures: [
    { what: 'hub, nobody looks', value: median(closed.map(({ hubPercent }) => hubPercent)), unit: '% of a core' },
    { what: 'hub, the dashboard adds', value: median(differences), unit: '% of a core', atMost: 2 },
    { what: 'frames of the dashboard', value: median(frames.map((each) => each.perSecond)), unit: '/s', atLeast: 50 },
    { what: 'its longest frame', value: Math.max(...frames.map(({ longestMs }) => longestMs)), unit: 'ms' },
    { what: 'frames of an empty page', value: atMost.perSecond, unit: '/s' },
  ],
  details: intervals.map((each) => ({
    page: each.page,
    'hub %': each.hubPercent,
    'deliveries/s': each.deliveries,
    'load client %': each.clientPercent,
    'others %': each.othersPercent,
    'frames/s': each.frames?.perSecond ?? '',
    'longest ms': each.frames?.longestMs ?? '',
  })),
})

async function interval(): Promise<Omit<Interval, 'page'>> {
  const measured = await load.call('measure', { ms: seconds * 1000, serverPids: hub.pids })
  return {
    hubPercent: 100 * measured.serverBusy,
    deliveries: measured.perSecond,
    clientPercent: 100 * measured.clientBusy,
    othersPercent: 100 * measured.othersBusy,
  }
}
