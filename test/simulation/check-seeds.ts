import { playSeeds } from './play-seeds.ts'
import { formatTally } from './tally.ts'

/** Plays seeds, prints what happened in them, and gives back all that is wrong. */
export async function checkSeeds({ from, seeds }: { from: number; seeds: number }): Promise<string[]> {
  const { failures, tally, steps, events, virtualMs } = await playSeeds({ from, seeds, repeatEvery: 50 })
  const minutes = Math.round(virtualMs / 60_000)
  console.log(`seeds ${from} to ${from + seeds - 1}: ${steps} steps, ${events} entries, ${minutes} virtual minutes`)
  console.log(formatTally(tally))
  const never = [...tally].filter(([, count]) => count === 0).map(([kind]) => `never happened: ${kind}`)
  return [...failures, ...never]
}
