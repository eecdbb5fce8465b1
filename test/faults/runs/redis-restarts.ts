/** Redis killed and started on its append-only file, and standing still, 10 s each: two hubs, 40 readers, 500 events/s. */
import { restartRedis } from '../redis/faults.ts'
import { longRedisRun } from '../redis/run.ts'

await longRedisRun(
  'redis-restarts',
  { hubs: 2, cycles: 5, readers: 40, rate: 500, away: 10_000, apart: 5000 },
  ({ cycles, away, apart }) =>
    (stage) =>
      restartRedis(stage, cycles, away, apart),
)
