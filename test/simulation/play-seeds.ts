import type { Violation } from './judge.ts'
import { type Outcome, type SimulateOptions, simulate } from './simulate.ts'
import { addTally, createTally, type Tally } from './tally.ts'

export interface Played {
  readonly seeds: number
  readonly failures: readonly string[]
  readonly tally: Tally
  readonly steps: number
  readonly events: number
  readonly virtualMs: number
}

export interface PlayOptions extends SimulateOptions {
  readonly from: number
  readonly seeds: number
  /** Every so many seeds are played a second time, which has to give the same history to the byte. */
  readonly repeatEvery: number
  onProgress?(played: Played): void
}

const progressEvery = 1000

export async function playSeeds({ from, seeds, repeatEvery, onProgress, ...options }: PlayOptions): Promise<Played> {
  const failures: string[] = []
  const played = { seeds: 0, failures, tally: createTally(), steps: 0, events: 0, virtualMs: 0 }
  for (let seed = from; seed < from + seeds; seed += 1) {
    const outcome = await simulate(seed, options).catch((cause: unknown) => {
      // One history that the simulation itself cannot finish must not hide the verdict on all others.
      failures.push(`${nameOf(seed)} threw ${(cause as Error).stack}`)
    })
    if (!outcome) continue
    addTally(played.tally, outcome.tally)
    played.seeds += 1
    played.steps += outcome.steps
    played.events += outcome.events
    played.virtualMs += outcome.virtualMs
    if (outcome.violations.length > 0) failures.push(formatFailure(outcome))
    if (seed % repeatEvery === 0 && (await simulate(seed, options)).hash !== outcome.hash) {
      failures.push(`seed ${seed} did not play the same history twice`)
    }
    if (played.seeds % progressEvery === 0) onProgress?.(played)
  }
  return played
}

/** The seed, how to see it again, and what broke first; what follows is often only a consequence. */
export function formatFailure({ seed, violations }: Outcome): string {
  const shown = violations
    .slice(0, 3)
    .map(({ invariant, message, at }: Violation) => `  ${at.toFixed(3)} ${invariant}: ${message}`)
  return [`${nameOf(seed)}: ${violations.length} violations`, ...shown].join('\n')
}

function nameOf(seed: number): string {
  return `seed ${seed} (npm run simulate -- --seed ${seed})`
}
