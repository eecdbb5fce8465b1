/**
 * A reader of a pattern that comes back: how long until it has what it missed, with many channels that have no news.
 *
 * Method: a log with 100,000 channels below `orders/`, each with an event, and as many below `stock/`, at 10,000 events a
 * second. A reader of
 * `orders/*` has everything; an hour later 1,000 events come to 1,000 of its channels, and to as many of the others, two in
 * a millisecond, each in a commit of its own. A hub that has just been opened, so that nothing is in its memory. Timed from `hub.port.subscribe` until the reader
 * is live. Median of the runs, each with a hub of its own, on the embedded log and on the one in memory.
 *
 * Beside it the same return to one channel with 1,000 events, which is what it would cost without a pattern; and
 * `hub.admin.window('orders/*')`, which looks at every channel, as the log does for a reader that was away for too long.
 *
 * How it could mislead: no socket is written, and the file is in the page cache.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHub, type Hub, type LogSource, systemEnvironment } from '@rejoin/hub'
import { createSubscription } from '@rejoin/hub/internal'
import { lmdbLog } from '@rejoin/hub/lmdb'
import type { Log } from '@rejoin/hub/log'
import { memoryLog } from '@rejoin/hub/memory'
import { renderId } from '@rejoin/protocol'
import { readWithoutSocket } from './load/socketless.ts'
import { median } from './measure.ts'
import { numbersFrom } from './options.ts'
import { report } from './report.ts'

const { channels, missed, runs } = numbersFrom({ channels: 100_000, missed: 1000, runs: 5 })
const eventBytes = 200
const data = 'x'.repeat(eventBytes)

const folder = mkdtempSync(join(tmpdir(), 'rejoin-bench-'))
const disk = lmdbLog(folder)
const cursors = await fill(disk)
const cold: number[] = []
const single: number[] = []
const every: number[] = []
for (let run = 0; run < runs; run += 1) {
  cold.push(await returnMs(disk, 'orders/*', cursors.beforeNews))
  single.push(await returnMs(disk, 'single', cursors.beforeNews))
  every.push(await lookMs(disk))
}
rmSync(folder, { recursive: true })
const inMemory = await inMemoryMs()

report({
  bench: 'patterns',
  inputs: { channels, missed, eventBytes, runs },
  figures: [
    { what: `${missed} missed events of a pattern, embedded log`, value: median(cold), unit: 'ms', atMost: 50 },
    { what: `${missed} missed events of a pattern, memory log`, value: median(inMemory), unit: 'ms', atMost: 50 },
    { what: `${missed} missed events of one channel`, value: median(single), unit: 'ms' },
    { what: 'a look at every channel of the pattern', value: median(every), unit: 'ms' },
  ],
  details: cold.map((ms, run) => ({ run: run + 1, pattern: ms, channel: single[run]!, 'every channel': every[run]! })),
})

/** Fills it, then publishes what a reader misses. */
async function fill(source: LogSource): Promise<{ beforeNews: string }> {
  let now = Date.now() - 3_600_000
  const log = await source.open({ ...systemEnvironment, now: () => now })
  for (let from = 0; from < channels; from += 500) {
    const names = Array.from({ length: Math.min(500, channels - from) }, (_, index) => from + index)
    now += 100
    await append(log, [...names.map((n) => `orders/${n}`), ...names.map((n) => `stock/${n}`)])
  }
  const beforeNews = renderId(await log.head(), log)
  now = Date.now() - 60_000
  for (let event = 0; event < missed; event += 1) {
    now += 1
    const n = Math.floor((event * channels) / missed)
    await append(log, [`orders/${n}`])
    await append(log, [`stock/${n}`])
  }
  await append(
    log,
    Array.from({ length: missed }, () => 'single'),
  )
  await log.close()
  return { beforeNews }
}

function append(log: Log, names: readonly string[]): Promise<unknown> {
  return log.append(
    names.map((channel) => ({ channel, type: 'message', data })),
    { token: 'bench' },
  )
}

async function returnMs(source: LogSource, name: string, cursor: string): Promise<number> {
  const hub = await createHub({ log: source })
  const ms = await timedReturn(hub, name, cursor)
  await hub.close()
  return ms
}

async function lookMs(source: LogSource): Promise<number> {
  const hub = await createHub({ log: source })
  const started = performance.now()
  await hub.admin.window('orders/*')
  const ms = performance.now() - started
  await hub.close()
  return ms
}

async function timedReturn(hub: Hub, name: string, cursor: string): Promise<number> {
  const started = performance.now()
  const reader = readWithoutSocket(hub, createSubscription([name]), { from: 'cursor', cursor })
  await reader.live
  const ms = performance.now() - started
  if (reader.bytes() < missed * eventBytes) throw new Error(`only ${reader.bytes()} bytes were replayed`)
  return ms
}

/** With a hot window of one byte, so that the log is asked. */
async function inMemoryMs(): Promise<number[]> {
  let log: Log | undefined
  let now = Date.now() - 200_000
  const source: LogSource = {
    name: 'memory',
    async open(environment) {
      log = await memoryLog().open(environment)
      return log
    },
  }
  const hub = await createHub({ log: source, hotBytes: 1, environment: { ...systemEnvironment, now: () => now } })
  const opened = log as unknown as Log
  for (let n = 0; n < channels; n += 1) await append(opened, [`orders/${n}`, `stock/${n}`])
  const cursor = renderId(await opened.head(), opened)
  now += 60_000
  for (let event = 0; event < missed; event += 1) {
    now += 1
    await append(opened, [`orders/${event}`, `stock/${event}`])
  }
  const times: number[] = []
  for (let run = 0; run < runs; run += 1) times.push(await timedReturn(hub, 'orders/*', cursor))
  await hub.close()
  return times
}
