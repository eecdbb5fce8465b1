/** The clock of Redis itself set back and forth: two hubs, 40 readers, 200 events/s. Needs a C compiler. */
import { stepRedisClock } from '../redis/faults.ts'
import { longRedisRun } from '../redis/run.ts'

await longRedisRun(
  'redis-time',
  { hubs: 2, readers: 40, rate: 200, apart: 5000 },
  ({ apart }) =>
    (stage) =>
      stepRedisClock(stage, [-60_000, 3_600_000, -3_600_000, 600_000, 599_000, 0], apart),
  { canSetClock: true },
)
