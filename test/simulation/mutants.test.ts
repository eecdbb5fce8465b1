import { afterAll, expect, test } from 'vitest'
import type { Invariant } from './judge.ts'
import { mutants } from './mutants.ts'
import { partsOf } from './parts.ts'
import { simulate } from './simulate.ts'

// A test that passes proves little unless it is seen to fail.
const seeds = 40
// Rare ones need a rare chain of faults; they are looked for until they are found.
const mostSeeds = 600

const rows: string[] = []

for (const { name, mistake, caughtBy } of mutants) {
  test(`whoever ${mistake} is caught (${name})`, async () => {
    const made = await partsOf(name)
    const catches = new Map<Invariant, number>()
    let first: number | undefined
    let played = 0
    for (; played < seeds || (!catches.has(caughtBy) && played < mostSeeds); played += 1) {
      const { violations } = await simulate(played, { ...made, untilBroken: true })
      if (violations.length > 0) first ??= played
      for (const invariant of new Set(violations.map((violation) => violation.invariant))) {
        catches.set(invariant, (catches.get(invariant) ?? 0) + 1)
      }
    }
    const by = [...catches].map(([invariant, count]) => `${invariant} ${count}`).join(', ')
    rows.push(`| \`${name}\` | ${mistake} | ${by} | ${played} | ${first} |`)
    expect([...catches.keys()]).toContain(caughtBy)
  }, 60_000)
}

afterAll(() => {
  console.log(['| mutant | mistake | caught by, in seeds | of | first |', '|---|---|---|---|---|', ...rows].join('\n'))
})
