/**
 * Two masters at once, one hub on the old one and two on the new: 60 readers, 500 events/s. `--ahead` sets how many ms the old
 * one is ahead of the new one; behind it when negative.
 */
import { splitMasters } from '../redis/faults.ts'
import { longRedisRun } from '../redis/run.ts'

await longRedisRun(
  'redis-split',
  { hubs: 3, readers: 60, rate: 500, lag: 1000, apart: 5000, ahead: 0 },
  ({ lag: lagMs, apart: apartMs, ahead: aheadMs }) =>
    (stage) =>
      splitMasters(stage, { lagMs, apartMs, aheadMs }),
  { canSetClock: true },
)
