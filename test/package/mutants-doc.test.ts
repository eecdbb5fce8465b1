import { expect, test } from 'vitest'
import { mends } from '../faults/mends/mends.ts'
import { mutants } from '../simulation/mutants.ts'
import { readText } from '../support/repository.ts'

test('the table of docs/concepts/simulation.md has every mutant, as it is', () => {
  const rows = [
    ...readText('docs/concepts/simulation.md').matchAll(/^\| `([a-z-]+)` \| (.+) \| ([a-z-]+) \| (\d+) \|$/gm),
  ]
  const told = rows.map(([, name, mistake, caughtBy, from]) => ({ name, mistake, caughtBy, from: Number(from) }))
  expect(told).toEqual(mutants.map(({ name, mistake, caughtBy, from = 0 }) => ({ name, mistake, caughtBy, from })))
})

test('the table of mistakes in the real logs has every one of them, as it is', () => {
  const rows = [...readText('docs/concepts/simulation.md').matchAll(/^\| `([a-z-]+)` \| (.+) \| `(.+)` \|$/gm)]
  const told = rows.map(([, name, mistake, file]) => ({ name, mistake, file }))
  expect(told).toEqual(mends.map(({ name, mistake, caughtBy }) => ({ name, mistake, file: caughtBy.file })))
})
