/** The master copies its data from a server that is behind, and old keys are put back: three hubs, 60 readers, 500 events/s. */
import { putKeysBack, rollBack } from '../redis/faults.ts'
import { longRedisRun } from '../redis/run.ts'

await longRedisRun('redis-rollback', { hubs: 3, readers: 60, rate: 500, lag: 3000 }, ({ lag }) => async (stage) => {
  await rollBack(stage, lag)
  await putKeysBack(stage, lag)
})
