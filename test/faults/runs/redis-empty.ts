/** Redis emptied while it runs, by a restart and by hand: two hubs, 200 readers, 100 events/s. */
import { emptyRedis } from '../redis-faults.ts'
import { longRedisRun } from './redis-run.ts'

// Our client reloads every 30 s at most. Emptied more often, readers would still be on their way from the time before, and
// be told of both in turn when nobody can say any more which is which.
await longRedisRun(
  'redis-empty',
  { hubs: 2, cycles: 3, readers: 200, rate: 100, apart: 30_000 },
  ({ cycles, apart }) =>
    (stage) =>
      emptyRedis(stage, cycles, apart),
)
