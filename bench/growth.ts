/**
 * How costs grow: per delivery, return, reader and channel from 100 to 10,000 of them, and per return with the window.
 *
 * Method: a hub in this process, readers without sockets, events of 200 bytes. Each cost is taken at several sizes, each size on a
 * hub of its own: processor time of the process (`cpuUsage`), or what the heap has grown by after a forced collection. The exponent is
 * the slope of the cost of *one* over the size, both on logarithmic axes: 0 is a cost that does not depend on the size, 1 a cost that
 * grows with it, so the total grows quadratically.
 *
 * - Delivery: one event to all readers of a channel, 200 times.
 * - Return: all readers return at once, each 50 events behind; in as many rounds as make 10,000 returns.
 * - Reader, channel: a reader that waits; a channel with one event, one reader for all of them. A hundred of either take less heap
 *   than the process's own heap varies by, so each size is measured on as many hubs at once as make 10,000: 100 hubs of 100, 10 of 1,000.
 * - Window: 100 readers return, 50 events behind, to a channel that keeps so many events, all of them there.
 *
 * How it could mislead: without sockets the hub's own part shows, which is the smaller one. Small sizes take little time, and what a
 * process does besides weighs more in them: an exponent below 0 is that. What a hub sets up with its first reader or channel counts
 * as theirs, and weighs more in a hub of 100. The log is in memory.
 */

import { setTimeout } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createHub, type Hub } from '@rejoin/hub'
import { createSubscription } from '@rejoin/hub/internal'
import { memoryLog } from '@rejoin/hub/memory'
import { readWithoutSocket } from './load/socketless.ts'
import { median } from './measure.ts'
import { numbersFrom } from './options.ts'
import { report } from './report.ts'

const { runs } = numbersFrom({ runs: 3 })
const sizes = [100, 1000, 10_000]
// As many at every size: a few take less time than the clock of the processor can tell, and less heap than the process's own heap varies by.
const total = 10_000
const windows = [100, 1000, 10_000, 100_000]
const behind = 50
const deliveries = 200
const text = 'x'.repeat(200)
// Half of the cost, or twice, over a hundredfold size: less than chance makes of it on a busy machine.
const flat = 0.15
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

interface Curve {
  readonly what: string
  readonly unit: string
  readonly points: readonly { readonly size: number; readonly cost: number }[]
}

// Once for nothing, to compile the code.
for (const warmUp of [costOfDeliveries, heapOfReaders, heapOfChannels]) await warmUp(1000)
await costOfReturns(total, 1000)

const curves: Curve[] = [
  await curve('processor time per delivery', 'µs', sizes, costOfDeliveries),
  await curve('processor time per return', 'µs', sizes, (readers) => costOfReturns(readers, 1000)),
  await curve('heap per reader', 'bytes', sizes, heapOfReaders),
  await curve('heap per channel', 'bytes', sizes, heapOfChannels),
  await curve('processor time per return, by the window', 'µs', windows, (events) => costOfReturns(100, events)),
]

report({
  bench: 'growth',
  inputs: { sizes: sizes.join(', '), windows: windows.join(', '), behind, deliveries, runs },
  figures: curves.map(({ what, points }) => ({
    what: `${what}, exponent`,
    value: exponentOf(points),
    unit: '',
    atMost: flat,
  })),
  details: curves.flatMap(({ what, unit, points }) => points.map(({ size, cost }) => ({ what, size, cost, unit }))),
})

async function curve(
  what: string,
  unit: string,
  at: readonly number[],
  cost: (size: number) => Promise<number>,
): Promise<Curve> {
  const points = []
  for (const size of at) {
    const costs: number[] = []
    for (let run = 0; run < runs; run += 1) costs.push(await cost(size))
    points.push({ size, cost: median(costs) })
  }
  return { what, unit, points }
}

async function costOfDeliveries(readers: number): Promise<number> {
  const hub = await createHub({ log: memoryLog() })
  for (let reader = 0; reader < readers; reader += 1) await readAt(hub, 'a', { from: 'now' }).live
  const micros = await cpuOf(async () => {
    for (let event = 0; event < deliveries; event += 1) {
      await hub.publish('a', { text })
      await new Promise(setImmediate)
    }
  })
  await hub.close()
  return micros / deliveries / readers
}

async function costOfReturns(readers: number, maxEvents: number): Promise<number> {
  const hub = await createHub({ log: memoryLog({ window: { maxEvents } }) })
  const ids: string[] = []
  for (let event = 0; event < maxEvents; event += 1) ids.push((await hub.publish('a', { text })).id)
  const cursor = ids.at(-1 - behind) as string
  const rounds = Math.ceil(total / readers)
  const micros = await cpuOf(async () => {
    for (let round = 0; round < rounds; round += 1)
      await Promise.all(Array.from({ length: readers }, () => readAt(hub, 'a', { from: 'cursor', cursor }).live))
  })
  await hub.close()
  return micros / readers / rounds
}

async function heapOfReaders(readers: number): Promise<number> {
  const hubs = await openHubs(total / readers)
  const bytes = await heapOf(async () => {
    for (const hub of hubs)
      for (let reader = 0; reader < readers; reader += 1) await readAt(hub, 'a', { from: 'now' }).live
  })
  await closeHubs(hubs)
  return bytes / total
}

async function heapOfChannels(channels: number): Promise<number> {
  const hubs = await openHubs(total / channels)
  for (const hub of hubs) await readAt(hub, 'of/*', { from: 'now' }).live
  const bytes = await heapOf(async () => {
    for (const hub of hubs)
      for (let channel = 0; channel < channels; channel += 1) await hub.publish(`of/${channel}`, { text })
  })
  await closeHubs(hubs)
  return bytes / total
}

function openHubs(count: number): Promise<Hub[]> {
  return Promise.all(Array.from({ length: count }, () => createHub({ log: memoryLog() })))
}

async function closeHubs(hubs: readonly Hub[]): Promise<void> {
  for (const hub of hubs) await hub.close()
  // Timers refer to a closed hub for up to a second. Its heap would be freed in the middle of the next measurement.
  await setTimeout(2000)
}

function readAt(hub: Hub, channel: string, start: Parameters<typeof readWithoutSocket>[2]) {
  return readWithoutSocket(hub, createSubscription([channel]), start)
}

async function cpuOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return user + system
}

async function heapOf(work: () => Promise<unknown>): Promise<number> {
  const before = await heapInUse()
  await work()
  return (await heapInUse()) - before
}

/** Several times, because what one collection finalises only the next one frees. */
async function heapInUse(): Promise<number> {
  for (let times = 0; times < 4; times += 1) {
    collect()
    await new Promise(setImmediate)
  }
  return process.memoryUsage().heapUsed
}

/** The slope of a line through the points, least squares, on logarithmic axes. */
function exponentOf(points: Curve['points']): number {
  const logs = points.map(({ size, cost }) => [Math.log(size), Math.log(Math.max(cost, 1e-3))] as const)
  const mean = (index: 0 | 1) => logs.reduce((sum, point) => sum + point[index], 0) / logs.length
  const [meanX, meanY] = [mean(0), mean(1)]
  const up = logs.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0)
  return up / logs.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
}
