/** Three hubs on one Redis, one after the other killed by SIGKILL: 60 readers, 500 events/s. */
import { killHubs } from '../redis/faults.ts'
import { longRedisRun } from '../redis/run.ts'

await longRedisRun(
  'redis-hubs',
  { hubs: 3, cycles: 20, readers: 60, rate: 500, apart: 3000 },
  ({ cycles, apart }) =>
    (stage) =>
      killHubs(stage, cycles, apart),
)
