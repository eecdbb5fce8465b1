/**
 * The network of 50 readers taken away for 1, 5 and 30 s at 200 events/s, for half of them without a sound.
 *
 * Our client runs with its defaults, so that after half a minute it may wait for another half before it tries again.
 */

import { startHub } from '../hubs/hub-process.ts'
import { longRun } from '../long-run.ts'
import { runDrops } from '../network/drops.ts'
import { throughHttp } from '../recorders/recorders.ts'

const heartbeatMs = 1000
const window = { maxEvents: 50_000, maxAgeMs: 600_000 }

await longRun({
  name: 'drops',
  inputs: { readers: 50, rate: 200, rounds: 1 },
  async run({ seed, readers, rate, rounds }, history, progress) {
    const hub = await startHub(history, { heartbeatMs, window })
    history.write({ kind: 'budget', rssBytes: 300 * 1024 * 1024 })
    await runDrops({
      ...{ history, seed, readers, window, port: hub.port, pids: [hub.pid] },
      drops: Array.from({ length: rounds }, () => [1, 5, 30]).flat(),
      eventsPerSecond: rate,
      send: throughHttp(`http://127.0.0.1:${hub.port}`),
      // The client's longest wait, a tenth more as jitter, and what is left to read.
      patience: { client: {}, strict: { silenceMs: 2 * heartbeatMs + 5000 }, catchUpMs: 45_000 },
      onProgress: (seconds) => progress(`back after ${seconds} s, and all have caught up or run out of time`),
    })
    await hub.stop()
  },
})
