/** Redis emptied while it runs, by a restart and by hand: two hubs, 200 readers, 100 events/s. */
import { emptyRedis } from '../redis/faults.ts'
import { longRedisRun } from '../redis/run.ts'

// Five reloads may follow each other, then our client waits for half a minute before each, and the run for it: it takes six
// minutes.
await longRedisRun(
  'redis-empty',
  { hubs: 2, cycles: 5, readers: 200, rate: 100, apart: 5000 },
  ({ cycles, apart }) =>
    (stage) =>
      emptyRedis(stage, cycles, apart),
)
