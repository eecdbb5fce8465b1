/** 1,000 publishes under strace: was each on the disk before it was answered? */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { judgeFlushes, tracedTo } from '../disk/flushes.ts'
import { memoryHistory } from '../history/history.ts'
import { startHub } from '../hubs/hub-process.ts'
import { announceRun } from '../long-run.ts'

const { inputs } = announceRun('flushes', { publishes: 1000 })
const folder = mkdtempSync(join(tmpdir(), 'rejoin-flushes-'))
const trace = join(folder, 'trace')
const hub = await startHub(memoryHistory(), { directory: join(folder, 'log'), under: tracedTo(trace) })
for (let count = 0; count < inputs.publishes; count += 1) {
  const body = `${count} ${'x'.repeat((count * 37) % 5000)}`
  await (await fetch(`http://127.0.0.1:${hub.port}/publish/orders`, { method: 'POST', body })).text()
}
await hub.stop()
const { answers, early } = judgeFlushes(readFileSync(trace, 'utf8'))
rmSync(folder, { recursive: true })
console.log(`${answers} publishes answered, ${early.length} of them before they were on the disk`)
for (const answer of early.slice(0, 10)) console.log(`  ${answer}`)
if (early.length > 0 || answers !== inputs.publishes) process.exitCode = 1
