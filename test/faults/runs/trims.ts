/** Readers that come back while the log lets go of what they need: 5,000 events/s, windows of 50 events. */
import { join } from 'node:path'
import { runTrims } from '../disk/trims.ts'
import { serveHub } from '../hubs/served-hub.ts'
import { longRun } from '../long-run.ts'
import { throughHub } from '../recorders/recorders.ts'

const window = { maxEvents: 50, maxAgeMs: 24 * 3_600_000 }
// A channel publishes one event at a time, so that many are needed where each waits for the disk.
const channels = Array.from({ length: 100 }, (_, index) => `prices/${index}`)

await longRun({
  name: 'trims',
  inputs: { readers: 40, rate: 5000, returns: 20 },
  async run({ seed, readers, rate, returns }, history, _progress, folder) {
    // In this process: so many publishes would not get through HTTP, with everybody else on the same two processors.
    const served = await serveHub({ directory: join(folder, 'log'), window, hotBytes: 1, heartbeatMs: 1000 })
    await runTrims({
      ...{ history, seed, readers, returns, window, channels, port: served.port, eventsPerSecond: rate },
      channelOf: (index) => channels[index % channels.length] as string,
      send: throughHub(served.hub),
      maxMs: 90_000,
      patience: {
        client: { retryMs: 20, maxRetryMs: 200 },
        strict: { retryMs: 20, silenceMs: 7000 },
        catchUpMs: 15_000,
      },
    })
    await served.close()
  },
})
