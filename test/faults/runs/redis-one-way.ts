/** Between one hub and Redis nothing arrives in one direction, for 5, 30 and 60 s: two hubs, 40 readers, 500 events/s. */
import { partOneWay } from '../redis/faults.ts'
import { longRedisRun } from '../redis/run.ts'

await longRedisRun(
  'redis-one-way',
  { hubs: 2, readers: 40, rate: 500, apart: 5000 },
  ({ apart }) =>
    (stage) =>
      partOneWay(stage, [5000, 30_000, 60_000], apart),
)
