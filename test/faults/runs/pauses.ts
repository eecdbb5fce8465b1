/** The hub's process stopped for 1, 5 and 30 s, and continued: 50 readers, 200 events/s. */
import { join } from 'node:path'
import { formatSpread, longRun } from '../long-run.ts'
import { runPauses } from '../process/pauses.ts'

const heartbeatMs = 1000

await longRun({
  name: 'pauses',
  inputs: { readers: 50, rate: 200, rounds: 1 },
  async run({ seed, readers, rate, rounds }, history, progress, folder) {
    const { noticed, noticedMs } = await runPauses({
      ...{ history, seed, readers, eventsPerSecond: rate },
      channels: ['orders/1', 'orders/2', 'stock'],
      pauses: Array.from({ length: rounds }, () => [1, 5, 30]).flat(),
      betweenMs: 5000,
      directory: join(folder, 'log'),
      window: { maxEvents: 50_000, maxAgeMs: 24 * 3_600_000 },
      hub: { heartbeatMs },
      // The client's longest wait, a tenth more as jitter, and what is left to read.
      patience: { client: {}, strict: { silenceMs: 2 * heartbeatMs + 5000 }, catchUpMs: 45_000 },
      onProgress: (seconds) => progress(`continued after ${seconds} s, and all have caught up or run out of time`),
    })
    progress(`${noticed} lines were given up while it stood still, after ${formatSpread(noticedMs)}`)
  },
})
