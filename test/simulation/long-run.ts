import { expect, test } from 'vitest'
import { partsOf } from './parts.ts'
import { formatFailure, playSeeds } from './play-seeds.ts'
import { simulate } from './simulate.ts'
import { formatTally } from './tally.ts'

// Started by scripts/simulate.js, which says what to play.
const { SIMULATE_SEED, SIMULATE_FROM = '0', SIMULATE_SEEDS = '1000', SIMULATE_MUTANT } = process.env
const forever = 24 * 3_600_000

test.runIf(SIMULATE_SEED !== undefined)(
  `seed ${SIMULATE_SEED}`,
  async () => {
    const options = { ...(SIMULATE_MUTANT ? await partsOf(SIMULATE_MUTANT) : {}), story: true }
    const outcome = await simulate(Number(SIMULATE_SEED), options)
    console.log(outcome.story.join('\n'))
    console.log(`\n${outcome.steps} steps, ${outcome.events} entries, sha256 ${outcome.hash}`)
    console.log(outcome.violations.length > 0 ? formatFailure(outcome) : 'no violations')
    expect((await simulate(Number(SIMULATE_SEED), options)).hash).toBe(outcome.hash)
    expect(outcome.violations).toEqual([])
  },
  forever,
)

test.runIf(SIMULATE_SEED === undefined)(
  `${SIMULATE_SEEDS} seeds from ${SIMULATE_FROM}`,
  async () => {
    const started = performance.now()
    let told = 0
    const { failures, tally } = await playSeeds({
      ...(SIMULATE_MUTANT ? await partsOf(SIMULATE_MUTANT) : {}),
      from: Number(SIMULATE_FROM),
      seeds: Number(SIMULATE_SEEDS),
      repeatEvery: 1000,
      onProgress(played) {
        const seconds = ((performance.now() - started) / 1000).toFixed(0)
        console.log(`${played.seeds} seeds, ${played.failures.length} failed, ${seconds} s`)
        for (; told < played.failures.length; told += 1) console.log(played.failures[told])
      },
    })
    console.log(formatTally(tally))
    expect(failures).toEqual([])
  },
  forever,
)
