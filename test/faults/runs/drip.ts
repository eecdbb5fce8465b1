/** All limits of `rejoin serve` nearly full for ten minutes, by attackers that are slow and never stop. */
import { join } from 'node:path'
import { slowAttacks } from '../hostile/attacks.ts'
import { judgeCosts } from '../hostile/budget.ts'
import { runHostile } from '../hostile/hostile.ts'
import { longRun } from '../long-run.ts'

await longRun({
  name: 'drip',
  inputs: { readers: 200, rate: 20, seconds: 600, channels: 10_000 },
  async run({ seed, readers, rate, seconds, channels }, history, progress, folder) {
    const { onCost, onEnd } = judgeCosts(progress)
    onEnd(
      await runHostile({
        ...{ history, seed, readers, eventsPerSecond: rate, names: slowAttacks, channels, onCost },
        ...{ forMs: 0, allForMs: seconds * 1000, restMs: 4000, recoverMs: 90_000 },
        directory: join(folder, 'log'),
        patience: { client: {}, strict: { silenceMs: 60_000 }, catchUpMs: 45_000 },
      }),
    )
  },
})
