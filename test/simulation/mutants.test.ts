import { afterAll, expect, test } from 'vitest'
import { mutants } from './mutants.ts'
import { partsOf } from './parts.ts'
import { simulate } from './simulate.ts'

// A test that passes proves little unless it is seen to fail. Some mistakes need a rare chain of faults; they are looked
// for until they are found.
const mostSeeds = 1500

const rows: string[] = []

for (const { name, mistake, caughtBy, from = 0 } of mutants) {
  test(`the simulation catches code that ${mistake} (${name})`, async () => {
    const made = await partsOf(name)
    const others = new Set<string>()
    for (let seed = from; seed < from + mostSeeds; seed += 1) {
      const { violations } = await simulate(seed, { ...made, untilBroken: true })
      const broken = new Set<string>(violations.map((violation) => violation.invariant))
      if (broken.delete(caughtBy)) {
        const also = others.size > 0 ? ` (before: ${[...others].join(', ')})` : ''
        rows.push(`| \`${name}\` | ${mistake} | ${caughtBy}${also} | ${seed} |`)
        return
      }
      for (const invariant of broken) others.add(invariant)
    }
    expect(`caught by ${[...others].join(', ')}`).toContain(caughtBy)
  }, 120_000)
}

afterAll(() => {
  console.log(['| mutant | mistake | caught by | in seed |', '|---|---|---|---|', ...rows].join('\n'))
})
