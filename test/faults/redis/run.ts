import { longRun } from '../long-run.ts'
import { type RedisRunOptions, runOnRedis } from './stage.ts'

// What all long runs on Redis have in common; each names its fault.
export async function longRedisRun<Inputs extends { hubs: number; readers: number; rate: number }>(
  name: string,
  inputs: Inputs & Record<string, number>,
  faultsOf: (inputs: Inputs) => RedisRunOptions['faults'],
  options: Pick<RedisRunOptions, 'settings' | 'canSetClock'> = {},
): Promise<void> {
  await longRun({
    name,
    inputs: { channels: 10, collect: 0, ...inputs },
    async run(given, history, progress) {
      const { hubs, readers, rate: eventsPerSecond, seed, channels, collect: collectMs } = given
      await runOnRedis({
        ...{ name, history, seed, hubs, readers, eventsPerSecond, collectMs, ...options },
        channels: Array.from({ length: channels }, (_, index) => `orders/${index}`),
        channelsOf: (index) => [`orders/${index % channels}`, `orders/${(index + 3) % channels}`],
        window: { maxEvents: 100_000, maxAgeMs: 24 * 3_600_000, maxBytes: 256 * 1024 * 1024 },
        hub: { heartbeatMs },
        patience: {
          client: { maxRetryMs: 2000 },
          strict: { silenceMs: 2 * heartbeatMs + 5000 },
          // From the end of a fault: the reader's wait, the hub's own, and what is left to read.
          catchUpMs: 30_000,
        },
        faults: faultsOf(given),
      })
      progress('all faults done')
    },
  })
}

const heartbeatMs = 1000
