/** A replica takes over while the master lives on, and one connection of each hub moves: three hubs, 60 readers, 500 events/s. */
import { moveLines } from '../redis/faults.ts'
import { longRedisRun } from '../redis/run.ts'

await longRedisRun(
  'redis-moves',
  { hubs: 3, readers: 60, rate: 500, apart: 5000 },
  ({ apart }) =>
    (stage) =>
      moveLines(stage, apart),
)
