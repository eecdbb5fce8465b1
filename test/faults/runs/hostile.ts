/** Every attack on `rejoin serve` in turn, then all at once, beside 200 honest readers. */
import { join } from 'node:path'
import { attacks } from '../hostile/attacks.ts'
import { type AttackCost, allAttacks, runHostile } from '../hostile.ts'
import { longRun } from './long-run.ts'

const budget = { p99Ms: 500, rssBytes: 400e6, recovered: 1.2 }

await longRun({
  name: 'hostile',
  inputs: { readers: 200, rate: 20, seconds: 12, together: 30, channels: 100_000, only: 0 },
  async run({ seed, readers, rate, seconds, together, channels, only }, history, progress, folder) {
    const problems: string[] = []
    const names = only > 0 ? allAttacks.slice(only - 1, only) : allAttacks
    progress(
      `${'attack'.padEnd(24)} ${'RSS'.padStart(8)} ${'of files'.padStart(8)} ${'p99'.padStart(8)} ${'longest turn'.padStart(13)}`,
    )
    const { deaths, start, end, keptKeys } = await runHostile({
      ...{ history, seed, readers, eventsPerSecond: rate, names, channels },
      ...{ forMs: seconds * 1000, allForMs: together * 1000, restMs: 4000, recoverMs: 90_000 },
      directory: join(folder, 'log'),
      patience: { client: {}, strict: { silenceMs: 60_000 }, catchUpMs: 45_000 },
      onCost(cost) {
        progress(rowOf(cost))
        if (cost.p99 > budget.p99Ms) problems.push(`${cost.attack}: p99 is over ${budget.p99Ms} ms`)
        if (cost.rss > budget.rssBytes) problems.push(`${cost.attack}: RSS is over ${megabytes(budget.rssBytes)}`)
      },
    })
    progress(`RSS before the attacks ${megabytes(start.rss)}, ${megabytes(start.files)} of it of files`)
    progress(`RSS afterwards ${megabytes(end.rss)}, ${megabytes(end.files)} of it of files`)
    problems.push(...deaths.map((death) => `The hub ended. ${death}`))
    if (end.rss > budget.recovered * start.rss)
      problems.push(`RSS did not come back to ${budget.recovered} of the start`)
    if (!keptKeys) problems.push('A publish that was sent again under its key was another event')
    for (const problem of problems) console.log(`FAILED: ${problem}`)
    if (problems.length > 0) process.exitCode = 1
  },
})

function rowOf({ attack, rss, files, p99, longestTurn, died }: AttackCost): string {
  const says = attacks.find(({ name }) => name === attack)?.says ?? ''
  const figures = [
    megabytes(rss).padStart(8),
    megabytes(files).padStart(8),
    `${p99.toFixed(0)} ms`.padStart(8),
    `${longestTurn.toFixed(0)} ms`.padStart(13),
  ]
  return `${attack.padEnd(24)} ${figures.join(' ')}  ${died ? 'THE HUB ENDED  ' : ''}${says}`
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(0)} MB`
}
