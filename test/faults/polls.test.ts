import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runPolls } from './polls.ts'

test.each([1, 2])('every poll of a random history is answered as a simple model says, in memory (%i)', async (seed) => {
  const { counts, wrong } = await runPolls({ seed, polls: 400, hubs: [{}] })
  expect(wrong).toEqual([])
  expect(Math.min(counts.resumed ?? 0, counts.gaps ?? 0, counts.fresh ?? 0)).toBeGreaterThan(20)
})

test('every poll of a random history is answered as a simple model says, over restarts of the embedded log', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'rejoin-polls-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const { counts, wrong } = await runPolls({ seed: 3, polls: 400, hubs: [{ directory }] })
  expect(wrong).toEqual([])
  expect(counts.restarts).toBeGreaterThan(0)
})
