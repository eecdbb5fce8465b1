/** The hub's clock set back a minute and forth and back an hour, while it runs and between two runs. */
import { join } from 'node:path'
import { longRun } from '../long-run.ts'
import { runClockSteps } from '../process/clock-steps.ts'

const heartbeatMs = 1000

await longRun({
  name: 'clocks',
  inputs: { readers: 20, rate: 200, seconds: 5 },
  run: ({ seed, readers, rate, seconds }, history, progress, folder) =>
    runClockSteps({
      ...{ history, seed, readers, eventsPerSecond: rate },
      channels: ['orders/1', 'orders/2', 'stock'],
      stepsMs: [-60_000, 3_600_000, -3_600_000, 0],
      betweenMs: seconds * 1000,
      directory: join(folder, 'log'),
      window: { maxEvents: 50_000, maxAgeMs: 24 * 3_600_000 },
      hub: { heartbeatMs },
      patience: { client: { maxRetryMs: 5000 }, strict: { silenceMs: 2 * heartbeatMs + 5000 }, catchUpMs: 15_000 },
      onProgress: progress,
    }),
})
