/**
 * 20 storms in a row: 380 of 400 readers are cut at once, miss half a second of 50 events/s, and are all let back at once.
 *
 * The hub is on the embedded log. 20 readers are never cut, and read on meanwhile. After each storm, when all readers are back, the hub
 * collects its garbage and counts its heap, descriptors and timers. After the last storms it may hold hardly more than after the
 * first few: a kilobyte left behind by each reader in each storm would be 5.7 MB. Needs Linux.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startHub } from '../hubs/hub-process.ts'
import { longRun } from '../long-run.ts'
import { runStorms } from '../network/storms.ts'
import { throughHttp } from '../recorders/recorders.ts'

const heartbeatMs = 1000
const window = { maxEvents: 50_000, maxAgeMs: 600_000 }
// Full after the first storms, so that the events of a long run do not look like a leak.
const hotBytes = 256 * 1024
const silentMs = 2000
const settleMs = silentMs + 1000
// On a busy machine the heap grew by 0.6 MB, most of it in the first ten storms. Descriptors stayed the same, timers differed by two.
const growth = { heapBytes: 3_000_000, descriptors: 10, timers: 10 }

await longRun({
  name: 'storms',
  inputs: { storms: 20, readers: 400, stay: 20, rate: 50, away: 500 },
  async run({ seed, storms, readers, stay, rate, away }, history, progress) {
    const directory = mkdtempSync(join(tmpdir(), 'rejoin-storms-'))
    const hub = await startHub(history, { heartbeatMs, window, directory, silentMs, hotBytes })
    history.write({ kind: 'budget', rssBytes: 300 * 1024 * 1024, growth })
    await runStorms({
      history,
      seed,
      storms,
      readers,
      stay,
      window,
      port: hub.port,
      awayMs: away,
      eventsPerSecond: rate,
      send: throughHttp(`http://127.0.0.1:${hub.port}`),
      patience: {
        client: { retryMs: 50, maxRetryMs: 500 },
        strict: { retryMs: 50, silenceMs: 2 * heartbeatMs + 5000 },
        catchUpMs: 30_000,
      },
      async afterStorm(storm) {
        // Clients leave connections behind on which they never sent a request. By then the hub has closed them.
        await new Promise((resolve) => setTimeout(resolve, settleMs))
        await hub.measureAtRest()
        progress(`${storm} of ${storms} storms`)
      },
    })
    await hub.stop()
    rmSync(directory, { recursive: true })
  },
})
