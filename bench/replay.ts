/**
 * Replaying from the embedded log: events per second through the hub, opening a large log, and a rush on a cold hub.
 *
 * Method: a log of 1,000,000 events of 200 bytes in one channel, appended by 256 publishers at a time, so that its records
 * are as full as under load; then closed.
 *
 * - Opening: from `lmdbLog().open()` to its promise, in a process that has loaded lmdb before. Median of 5.
 * - Replay: one reader without a socket that starts at the earliest event and takes whatever it is given; timed from
 *   `hub.port.subscribe` until it is live. Reading, decoding, ids, encoding and joining are inside. Median of the runs.
 * - Rush: another log, of 5,000 events that came 500 a second; a hub that has just been opened; 10,000 readers of the one
 *   channel, up to 50 events behind, all subscribed in one turn. Counted are the log's `read` calls until the last of them
 *   is live.
 *
 * How it could mislead: the file is in the page cache, as it is after a restart of the process, but not of the machine. No
 * socket is written. One channel is the best case of a rush: reads go by channel, not by reader. Blocks start at round
 * moments, so where events stand denser than here, a rush reads more of them.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHub, type LogSource, systemEnvironment } from '@rejoin/hub'
import { createSubscription } from '@rejoin/hub/internal'
import { lmdbLog } from '@rejoin/hub/lmdb'
import type { Log } from '@rejoin/hub/log'
import { type Position, renderId } from '@rejoin/protocol'
import { readWithoutSocket } from './load/socketless.ts'
import { median } from './measure.ts'
import { numbersFrom } from './options.ts'
import { openingMs } from './processes/opening.ts'
import { report } from './report.ts'

const { events, readers, runs } = numbersFrom({ events: 1_000_000, readers: 10_000, runs: 3 })
const eventBytes = 200
const together = 256
const behind = 50
const folder = mkdtempSync(join(tmpdir(), 'rejoin-bench-'))
const source = lmdbLog(folder, { window: { maxEvents: events, maxBytes: Number.POSITIVE_INFINITY } })
const subscription = createSubscription(['bench'])
const entry = { channel: 'bench', type: 'tick', data: 'x'.repeat(eventBytes) }

const fillSeconds = await fill()
const fileBytes = statSync(join(folder, 'data.mdb')).size
const opens: number[] = []
for (let run = 0; run < 5; run += 1) opens.push(await openingMs(source))
const rates: number[] = []
for (let run = 0; run < runs; run += 1) rates.push(await replayRate())
const rush = await rushOn()
rmSync(folder, { recursive: true })

report({
  bench: 'replay',
  inputs: { events, eventBytes, readers, runs, 'file, MB': Math.round(fileBytes / 1e6) },
  figures: [
    { what: 'replayed through the hub', value: median(rates), unit: 'events/s', atLeast: 500_000 },
    { what: 'opening the log', value: median(opens), unit: 'ms', atMost: 2000 },
    { what: `log reads for ${readers} readers at once`, value: rush.reads, unit: 'reads', atMost: 20 },
    { what: 'until the last of them was live', value: rush.ms, unit: 'ms' },
  ],
  details: [
    { step: 'fill', figure: events / fillSeconds, unit: 'events/s' },
    ...opens.map((ms) => ({ step: 'open', figure: ms, unit: 'ms' })),
    ...rates.map((rate) => ({ step: 'replay', figure: rate, unit: 'events/s' })),
  ],
})

async function fill(): Promise<number> {
  const log = await source.open(systemEnvironment)
  const started = performance.now()
  let appended = 0
  const publisher = async () => {
    while (appended < events) {
      appended += 1
      await log.append([entry], { token: 'bench' })
    }
  }
  await Promise.all(Array.from({ length: together }, publisher))
  const seconds = (performance.now() - started) / 1000
  await log.close()
  return seconds
}

async function replayRate(): Promise<number> {
  const hub = await createHub({ log: source })
  const started = performance.now()
  const reader = readWithoutSocket(hub, subscription, { from: 'earliest' })
  await reader.live
  const rate = events / ((performance.now() - started) / 1000)
  if (reader.bytes() < events * eventBytes) throw new Error(`only ${reader.bytes()} bytes were replayed`)
  await hub.close()
  return rate
}

async function rushOn(): Promise<{ reads: number; ms: number }> {
  const calm = lmdbLog(join(folder, 'calm'))
  const lastIds = await fillCalmly(calm)
  let reads = 0
  const counting: LogSource = {
    name: calm.name,
    async open(environment) {
      const log = await calm.open(environment)
      const read: Log['read'] = (...args) => {
        reads += 1
        return log.read(...args)
      }
      return new Proxy(log, {
        get(target, name) {
          const value: unknown = name === 'read' ? read : Reflect.get(target, name, target)
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
    },
  }
  const hub = await createHub({ log: counting })
  const started = performance.now()
  const all = Array.from({ length: readers }, (_, index) =>
    readWithoutSocket(hub, subscription, { from: 'cursor', cursor: lastIds[index % lastIds.length]! }),
  )
  await Promise.all(all.map((reader) => reader.live))
  const ms = performance.now() - started
  await hub.close()
  return { reads, ms }
}

/** Appends at the pace of an application, on a clock of its own. Gives the ids of the newest events. */
async function fillCalmly(log: LogSource): Promise<string[]> {
  const count = 5000
  let now = Date.now() - count * 2
  const opened = await log.open({ ...systemEnvironment, now: () => now })
  const places: Position[] = []
  for (let appended = 0; appended < count; appended += 1) {
    now += 2
    const append = await opened.append([entry], { token: 'bench' })
    places.push(...append.stamps.map(({ position }) => position))
  }
  const ids = places.slice(-behind).map((position) => renderId(position, opened))
  await opened.close()
  return ids
}
