import fc from 'fast-check'
import { test } from 'vitest'
import { moves, openStage } from './stage.ts'

test('a long random history of appends, trims, cuts, stalls and late reads loses nothing (§4.5, §4.6)', async () => {
  const options = fc.record({
    reads: fc.constantFrom('when asked' as const, 'when answering' as const),
    hotBytes: fc.constantFrom(1, 150, 1_000_000),
    names: fc.constantFrom(['a', 'b'], ['*']),
  })
  // Weighted so that histories get somewhere: many small steps, rare trims.
  const move = fc.constantFrom(
    ...moves,
    ...(['append a', 'append b', 'connect', 'read', 'read', 'deliver', 'deliver', 'flush', 'flush'] as const),
  )
  await fc.assert(
    fc.asyncProperty(options, fc.array(move, { minLength: 20, maxLength: 120 }), async (given, steps) => {
      const stage = await openStage(given)
      for (const step of steps) await stage.moves[step]()
      await stage.finishAndCheck()
    }),
    { numRuns: 400 },
  )
}, 60_000)
