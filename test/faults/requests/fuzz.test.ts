import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runFuzz } from './fuzz.ts'

const seed = Number(process.env.REJOIN_FAULTS_SEED ?? 1)

test('whatever is sent to rejoin serve, it answers without an error of its own, and stays', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'rejoin-fuzz-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const { statuses, failures, complaints } = await runFuzz({ seed, requests: 3000, directory })
  expect(failures, `seed ${seed}`).toEqual([])
  expect(complaints, `seed ${seed}`).toEqual([])
  // That it got past the doors: events were published and streams opened, and not all of it was rejected.
  expect([...statuses.keys()]).toEqual(expect.arrayContaining([200, 201, 400, 401, 403, 404, 405, 413]))
})
