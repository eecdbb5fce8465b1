/**
 * 60,000 polls of random histories with tiny windows, each compared with a model that knows none of our code.
 *
 * A third each on the memory log, on LMDB with restarts, and on two hubs on one Redis. Channels, sets of channels, patterns, filters, every way
 * to start, every id there ever was; invalidations, ends, repeated keys. A new history every 2,000 polls.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { askRedis, startRedis } from '../../support/redis-server.ts'
import { announceRun } from '../long-run.ts'
import { runPolls } from '../requests/polls.ts'

const { inputs, progress } = announceRun('polls', { polls: 60_000, each: 2000 })
const folder = mkdtempSync(join(tmpdir(), 'rejoin-polls-'))
const redis = await startRedis()
const sums: Record<string, number> = {}
const wrong: string[] = []
for (let history = 0; history * inputs.each < inputs.polls && wrong.length === 0; history += 1) {
  const onRedis = { redis: { port: redis.port } }
  const hubs = [[{}], [{ directory: join(folder, `${history}`) }], [onRedis, onRedis]][history % 3] as object[]
  await askRedis(redis.port, 'FLUSHALL')
  const outcome = await runPolls({ seed: inputs.seed + history, polls: inputs.each, hubs })
  for (const [what, count] of Object.entries(outcome.counts)) sums[what] = (sums[what] ?? 0) + count
  for (const text of outcome.wrong) wrong.push(`seed ${inputs.seed + history}: ${text}`)
  if (history % 3 === 2) progress(JSON.stringify(sums))
}
await redis.remove()
rmSync(folder, { recursive: true })
for (const text of wrong) console.log(text)
console.log(JSON.stringify(sums))
console.log(wrong.length === 0 ? 'PASSED' : 'FAILED')
if (wrong.length > 0) process.exitCode = 1
