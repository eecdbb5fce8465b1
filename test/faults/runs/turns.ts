/**
 * Every request with all kinds of parameters at a million channels: no turn of the loop over 20 ms.
 *
 * On the memory log, on LMDB and on Redis, or on one of them with `--only 1`, `2` or `3`. Then 50 readers at once of what is dear to
 * serve, with a publisher beside them: all greeted within `--together` ms, and a p99 of `--publish` ms for the publisher. On a
 * machine that is busy with other things the last two say more about the machine, so the publisher's p99 without the readers,
 * and what the server used of its processor, are told beside them. Time in which the system ran something else, and pauses of
 * the garbage collector, are taken off the turns. On Redis, the longest call
 * of a script is told as well: nobody else is answered meanwhile.
 *
 * Last, HTTP/2 requests that are reset in the packet that opens them: 400 in a packet may take a turn of `--resets` percent of the
 * turn that Node's own server needs in the same process, and publishes beside 45 KB of them a second have a p99 of `--flood` ms.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { askRedis, startRedis } from '../../support/redis-server.ts'
import { announceRun } from '../long-run.ts'
import { runTurns } from '../turns/turns.ts'

const bars = { longest: 20, together: 1000, publish: 50, resets: 130, flood: 250 }
const { inputs, progress } = announceRun('turns', { channels: 1_000_000, full: 10_000, only: 0, ...bars })
const logs = (['memory', 'lmdb', 'redis'] as const).filter((_, index) => inputs.only === 0 || inputs.only === index + 1)
let failures = 0

for (const log of logs) {
  const directory = mkdtempSync(join(tmpdir(), 'rejoin-turns-'))
  const redis = log === 'redis' ? await startRedis({ settings: { 'slowlog-log-slower-than': 5000 } }) : undefined
  const { channels, full } = inputs
  const { turns, crowds, resets } = await runTurns({
    ...{ log, channels, full, directory },
    ...(redis && { redisPort: redis.port }),
    onProgress: (text) => progress(`${log}: ${text}`),
  })
  if (redis) {
    // An entry is its id, its time, how long it took in µs, and its command.
    const slow = (await askRedis(redis.port, 'SLOWLOG', 'GET', '1000')).split('\n')
    const tookMs = slow.flatMap((line, index) => (line === 'evalsha' ? Number(slow[index - 1]) / 1000 : []))
    progress(`redis: ${tookMs.length} calls of a script over 5 ms, the longest ${Math.max(0, ...tookMs)} ms`)
    await redis.remove()
  }
  rmSync(directory, { recursive: true })
  const tooLong = [...turns, ...crowds].filter(({ ms }) => ms > inputs.longest)
  const tooSlow = crowds.filter(({ allMs }) => allMs > inputs.together)
  const heldUp = crowds.filter(({ publishP99Ms }) => publishP99Ms > inputs.publish)
  const beyondNode = resets.hubMs > (resets.bareMs * inputs.resets) / 100
  const isFlooded = resets.publishP99Ms > inputs.flood
  failures += tooLong.length + tooSlow.length + heldUp.length + Number(beyondNode) + Number(isFlooded)
  progress(`${log}: ${turns.length} requests, the longest turns:`)
  for (const { what, ms } of turns.slice(0, 12)) console.log(`  ${ms.toFixed(1).padStart(8)} ms  ${what}`)
  for (const { what, ms, allMs, cpuMs, publishP99Ms, aloneP99Ms } of crowds) {
    const readers = `all greeted in ${allMs.toFixed(0)} ms, ${cpuMs.toFixed(0)} ms of a processor`
    const publishes = `publishes p99 ${publishP99Ms.toFixed(0)} ms, ${aloneP99Ms.toFixed(0)} ms alone`
    console.log(`  ${ms.toFixed(1).padStart(8)} ms  ${what}: ${readers}, ${publishes}`)
  }
  const { hubMs, bareMs, publishP99Ms, aloneP99Ms } = resets
  console.log(
    `  ${hubMs.toFixed(1).padStart(8)} ms  400 HTTP/2 requests reset in a packet, ${bareMs.toFixed(1)} ms in bare Node`,
  )
  const publishes = `publishes p99 ${publishP99Ms.toFixed(0)} ms, ${aloneP99Ms.toFixed(0)} ms alone`
  progress(`${log}: ${publishes} during a flood of HTTP/2 resets`)
  if (beyondNode || isFlooded) progress(`${log}: HTTP/2 resets are over their bars`)
  progress(
    `${log}: ${tooLong.length} turns too long, ${tooSlow.length} crowds too slow, ${heldUp.length} publishers held up`,
  )
}
console.log(failures === 0 ? 'PASSED' : `FAILED: ${failures} over their bars`)
if (failures > 0) process.exitCode = 1
