/** 100,000 requests that no client sends, over all routes of rejoin serve: no error of its own, no end, no complaint. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { announceRun } from '../long-run.ts'
import { runFuzz } from '../requests/fuzz.ts'

const { inputs, progress } = announceRun('fuzz', { requests: 100_000 })
const directory = mkdtempSync(join(tmpdir(), 'rejoin-fuzz-'))
const { statuses, failures, complaints } = await runFuzz({
  ...{ ...inputs, directory },
  onProgress: (sent) => progress(`${sent} of ${inputs.requests}`),
})
rmSync(directory, { recursive: true })

for (const [status, count] of [...statuses].sort(([a], [b]) => a - b)) console.log(`${status}  ${count}`)
for (const line of [...failures.slice(0, 20), ...complaints.slice(0, 20)]) console.log(`\n${line}`)
progress(`${failures.length} failures, ${complaints.length} complaints`)
if (failures.length + complaints.length > 0) process.exitCode = 1
