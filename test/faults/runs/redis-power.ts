/** Redis that flushes every second, killed, and with its last second cut off: two hubs, 60 readers, 500 events/s. */
import { cutPower } from '../redis/faults.ts'
import { longRedisRun } from '../redis/run.ts'

await longRedisRun(
  'redis-power',
  { hubs: 2, cycles: 10, readers: 60, rate: 500, lost: 1000, apart: 5000 },
  ({ cycles, lost, apart }) =>
    (stage) =>
      cutPower(stage, cycles, lost, apart),
  { settings: { appendfsync: 'everysec' } },
)
