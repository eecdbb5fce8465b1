/**
 * 20 storms in a row: 380 of 400 readers are cut at once, miss half a second of 50 events/s, and are all let back at once.
 *
 * The hub is on the embedded log. 20 readers are never cut, and read on meanwhile. The hub's memory is bounded: twenty storms are not
 * to leave more behind than one.
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

await longRun({
  name: 'storms',
  inputs: { storms: 20, readers: 400, stay: 20, rate: 50, away: 500 },
  async run({ seed, storms, readers, stay, rate, away }, history, progress) {
    const directory = mkdtempSync(join(tmpdir(), 'rejoin-storms-'))
    const hub = await startHub(history, { heartbeatMs, window, directory })
    history.write({ kind: 'budget', rssBytes: 300 * 1024 * 1024 })
    await runStorms({
      ...{ history, seed, storms, readers, stay, window, port: hub.port },
      awayMs: away,
      eventsPerSecond: rate,
      send: throughHttp(`http://127.0.0.1:${hub.port}`),
      patience: {
        client: { retryMs: 50, maxRetryMs: 500 },
        strict: { retryMs: 50, silenceMs: 2 * heartbeatMs + 5000 },
        catchUpMs: 30_000,
      },
      onProgress: (storm) => progress(`${storm} of ${storms} storms`),
    })
    await hub.stop()
    rmSync(directory, { recursive: true })
  },
})
