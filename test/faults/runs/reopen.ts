/**
 * `rejoin serve` filled, mostly emptied again, ended in order or by SIGKILL, and opened anew, 200 times on one folder.
 *
 * Events go by `/admin/invalidate`, or because the folder is opened with a window of a few events or a millisecond. After
 * each start every channel is read from several places and compared with what was acknowledged.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runReopen } from '../reopen.ts'
import { announceRun } from './long-run.ts'

const { inputs, progress } = announceRun('reopen', { cycles: 200 })
const directory = mkdtempSync(join(tmpdir(), 'rejoin-reopen-'))
const { wrong, ...counts } = await runReopen({
  ...{ ...inputs, directory: join(directory, 'log') },
  onProgress(cycle) {
    if (cycle % 20 === 0) progress(`${cycle} of ${inputs.cycles}`)
  },
})
rmSync(directory, { recursive: true })
console.log(JSON.stringify(counts))
for (const text of wrong) console.log(text)
console.log(wrong.length === 0 ? 'PASSED' : 'FAILED')
if (wrong.length > 0) process.exitCode = 1
