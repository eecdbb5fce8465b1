/** The clock of one of two hubs set back and forth: 40 readers, 200 events/s. */
import { stepClocks } from '../redis/faults.ts'
import { longRedisRun } from '../redis/run.ts'

await longRedisRun(
  'redis-clocks',
  { hubs: 2, readers: 40, rate: 200, apart: 5000 },
  ({ apart }) =>
    (stage) =>
      stepClocks(stage, [-60_000, 3_600_000, -3_600_000, 0], apart),
)
