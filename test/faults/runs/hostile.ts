/** Every attack on `rejoin serve` in turn, then all at once, beside 200 honest readers. */
import { join } from 'node:path'
import { judgeCosts } from '../hostile/budget.ts'
import { allAttacks, runHostile } from '../hostile/hostile.ts'
import { longRun } from '../long-run.ts'

await longRun({
  name: 'hostile',
  inputs: { readers: 200, rate: 20, seconds: 12, together: 30, channels: 100_000, only: 0 },
  async run({ seed, readers, rate, seconds, together, channels, only }, history, progress, folder) {
    const { onCost, onEnd } = judgeCosts(progress)
    onEnd(
      await runHostile({
        ...{ history, seed, readers, eventsPerSecond: rate, channels, onCost },
        names: only > 0 ? allAttacks.slice(only - 1, only) : allAttacks,
        ...{ forMs: seconds * 1000, allForMs: together * 1000, restMs: 4000, recoverMs: 90_000 },
        directory: join(folder, 'log'),
        patience: { client: {}, strict: { silenceMs: 60_000 }, catchUpMs: 45_000 },
      }),
    )
  },
})
