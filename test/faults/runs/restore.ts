/**
 * The folder of `rejoin serve` copied, and the copy put back or used beside the original, 100 times.
 *
 * Every id that was acknowledged is known to the run. Ids of what the folder has lost have to be told, at once and after any
 * number of new events; all others have to go on without a gap. No id is given out twice.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runRestore } from '../restore.ts'
import { announceRun } from './long-run.ts'

const { inputs, progress } = announceRun('restore', { cycles: 100 })
const directory = mkdtempSync(join(tmpdir(), 'rejoin-restore-'))
const { wrong, ...counts } = await runRestore({
  ...{ ...inputs, directory },
  onProgress(cycle) {
    if (cycle % 20 === 0) progress(`${cycle} of ${inputs.cycles}`)
  },
})
rmSync(directory, { recursive: true })
console.log(JSON.stringify(counts))
for (const text of wrong) console.log(text)
console.log(wrong.length === 0 ? 'PASSED' : 'FAILED')
if (wrong.length > 0) process.exitCode = 1
