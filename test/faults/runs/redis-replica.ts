/** A replica that is behind becomes the master: three hubs, 60 readers, 500 events/s. */
import { promoteReplica } from '../redis/faults.ts'
import { longRedisRun } from '../redis/run.ts'

await longRedisRun(
  'redis-replica',
  { hubs: 3, readers: 60, rate: 500, lag: 5000 },
  ({ lag }) =>
    (stage) =>
      promoteReplica(stage, lag),
)
