/** Hubs cut off from Redis for 5, 30 and 120 s, without a word: two hubs, 40 readers, 500 events/s. */
import { partHubs } from '../redis/faults.ts'
import { longRedisRun } from '../redis/run.ts'

await longRedisRun(
  'redis-parted',
  { hubs: 2, readers: 40, rate: 500, apart: 5000 },
  ({ apart }) =>
    (stage) =>
      partHubs(stage, [5000, 30_000, 120_000], apart),
)
