import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runReopen } from './reopen.ts'
import { runRestore } from './restore.ts'

// Printed with every failure; set it to repeat a run.
const seed = Number(process.env.REJOIN_FAULTS_SEED ?? 1)

test('rejoin serve opens its folder again and again, however it was ended and whatever was let go of', async () => {
  const outcome = await runReopen({ directory: folder(), seed, cycles: 6 })
  expect(outcome.wrong, `seed ${seed}`).toEqual([])
  expect(outcome.opened).toBe(7)
  expect(outcome.invalidated).toBeGreaterThan(0)
})

test('an older copy of the folder that is put back, or used beside the original, is told to every reader it lacks something for', async () => {
  const outcome = await runRestore({ directory: folder(), seed, cycles: 4 })
  expect(outcome.wrong, `seed ${seed}`).toEqual([])
  expect(Math.min(outcome.restored, outcome.overwritten, outcome.cloned, outcome.told)).toBeGreaterThan(0)
})

function folder(): string {
  const directory = mkdtempSync(join(tmpdir(), 'rejoin-folder-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  return join(directory, 'log')
}
