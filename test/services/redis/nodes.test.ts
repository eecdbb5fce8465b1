import { expect, test } from 'vitest'
import { checkHistory, formatReport, linesSource } from '../../faults/checker/checker.ts'
import type { Patience } from '../../faults/crowds/crowd.ts'
import { memoryHistory } from '../../faults/history/history.ts'
import {
  emptyRedis,
  killHubs,
  moveLines,
  partHubs,
  partOneWay,
  promoteReplica,
  restartRedis,
  rollBack,
  splitMasters,
  stepClocks,
} from '../../faults/redis/faults.ts'
import { type RedisRunOptions, runOnRedis } from '../../faults/redis/stage.ts'

// Printed with every failure; set it to repeat a run. Timing is the machine's own, so a repetition is close, not equal.
const seed = Number(process.env.REJOIN_FAULTS_SEED ?? 1)

// A busy machine may need most of this for the first answer to a hub that starts.
const answerWithinMs = 2000
const noticedMs = answerWithinMs + 500

const patience: Patience = {
  client: { retryMs: 50, maxRetryMs: 300 },
  strict: { retryMs: 50, silenceMs: 2000 },
  catchUpMs: 20_000,
}

test('a hub that is killed loses nothing: its readers go on at another, under the same ids', async () => {
  const { tally } = await run({ hubs: 2, faults: (stage) => killHubs(stage, 2, 300) })
  expect(tally.gaps).toBe(0)
})

test('a Redis that is killed, or stands still, loses nothing that was acknowledged, and alarms nobody', async () => {
  const { tally } = await run({ hubs: 2, faults: (stage) => restartRedis(stage, 1, noticedMs, 300) })
  expect(tally.gaps).toBe(0)
})

test('after Redis was emptied, every reader is told', async () => {
  const { tally } = await run({ hubs: 2, faults: (stage) => emptyRedis(stage, 1, 300) })
  expect(tally.gaps).toBe(3 * tally.readers)
})

test('after a replica took over without the newest events, readers that lost something are told, and no id is used again', async () => {
  await run({ hubs: 3, faults: (stage) => promoteReplica(stage, 1000) })
})

test('with two masters at once, readers led from one to the other are told, and miss nothing else', async () => {
  await run({ hubs: 2, faults: (stage) => splitMasters(stage, { lagMs: 300, apartMs: 1000 }) })
})

test('after the master copied stale data and leads again, readers that lost something are told (§2.3)', async () => {
  await run({ hubs: 2, faults: (stage) => rollBack(stage, 500) })
})

test('after one connection of each hub found a new master, the others follow, and nobody misses anything in silence', async () => {
  await run({ hubs: 2, faults: (stage) => moveLines(stage, 500) })
})

test('hubs that are cut off from Redis find back, and their readers miss nothing', async () => {
  const { tally } = await run({ hubs: 2, faults: (stage) => partHubs(stage, [noticedMs], 300) })
  expect(tally.gaps).toBe(0)
})

test('hubs that hear no answers, or are not heard, find back, and nothing is there twice', async () => {
  const { tally } = await run({ hubs: 2, faults: (stage) => partOneWay(stage, [noticedMs], 300) })
  expect(tally.gaps).toBe(0)
})

test('hubs with wrong clocks harm no reader (§2.2)', async () => {
  const { tally } = await run({
    hubs: 2,
    faults: (stage) => stepClocks(stage, [-60_000, 3_600_000, -3_600_000, 0], 200),
  })
  expect(tally.gaps).toBe(0)
})

async function run(options: Pick<RedisRunOptions, 'hubs' | 'faults'>) {
  const history = memoryHistory()
  await runOnRedis({
    ...{ name: 'redis', history, seed, patience, readers: 8, eventsPerSecond: 100 },
    channels: ['orders/1', 'orders/2', 'stock'],
    window: { maxEvents: 20_000, maxAgeMs: 24 * 3_600_000 },
    hub: { heartbeatMs: 200 },
    answerWithinMs,
    ...options,
  })
  const report = checkHistory([linesSource('history', history.lines)])
  expect(report.passed, `seed ${seed}\n${formatReport(report)}`).toBe(true)
  return report
}
