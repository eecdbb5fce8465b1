import { expect, test } from 'vitest'
import { type Move, moves, openStage, type Stage, type StageOptions } from './stage.ts'

// §4.5, §4.6: whatever the order in which appends, trims, reads, deliveries, turns and cuts fall, a reader gets every later
// event once and in order, or is told first. All orders of up to `depth` moves that do something, from a hub that a
// reader is connected to and one that it is not.
const names = ['a', 'b']
const stages: (StageOptions & { depth: number })[] = [
  { names, depth: 5, reads: 'when asked', hotBytes: 1 },
  { names, depth: 5, reads: 'when answering', hotBytes: 1 },
  { names, depth: 5, reads: 'when asked', hotBytes: 1_000_000 },
  // A pattern takes the same ways, with one read for all its channels.
  { names: ['*'], depth: 4, reads: 'when asked', hotBytes: 1 },
  { names: ['*'], depth: 4, reads: 'when answering', hotBytes: 1 },
  { names: ['*'], depth: 4, reads: 'when asked', hotBytes: 1_000_000 },
]
const openings: Move[][] = [[], ['connect', 'append a', 'deliver', 'flush', 'cut', 'append b']]

for (const { depth, ...options } of stages) {
  for (const opening of openings) {
    test(`every order of ${depth} moves after [${opening.join(', ')}] loses nothing (${JSON.stringify(options)})`, async () => {
      let checked = 0
      const failures: string[] = []

      async function explore(path: readonly Move[]): Promise<void> {
        let stage: Stage | undefined
        for (const move of moves) {
          stage ??= await played([...opening, ...path], options)
          // A move that finds nothing to do leads nowhere that a shorter path does not, and leaves the stage as it is.
          if (!(await stage.moves[move]())) continue
          const next = [...path, move]
          const verdict = await stage.finishAndCheck().then(
            () => undefined,
            (error: Error) => error.message,
          )
          stage = undefined
          checked += 1
          if (verdict) failures.push(`${[...opening, ...next].join(', ')}: ${verdict}`)
          if (next.length < depth) await explore(next)
        }
      }

      await explore([])
      expect(failures).toEqual([])
      expect(checked).toBeGreaterThan(depth === 5 ? 1000 : 100)
    }, 120_000)
  }
}

async function played(path: readonly Move[], options: StageOptions): Promise<Stage> {
  const stage = await openStage(options)
  for (const move of path) {
    // Not by `expect`, which takes as long as a move does.
    if (!(await stage.moves[move]())) throw new Error(`${move} of ${path.join(', ')} has found nothing to do.`)
  }
  return stage
}
