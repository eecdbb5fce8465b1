import { expect, test } from 'vitest'
import { checkSeeds } from './check-seeds.ts'

// A file of its own, so that it runs beside the first thousand.
test('in the histories of seeds 1000 to 1999 nobody loses anything without being told', async () => {
  expect(await checkSeeds({ from: 1000, seeds: 1000 })).toEqual([])
}, 300_000)
