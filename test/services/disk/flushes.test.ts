import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { judgeFlushes, tracedTo } from '../../faults/disk/flushes.ts'
import { memoryHistory } from '../../faults/history/history.ts'
import { startHub } from '../../faults/hubs/hub-process.ts'

test('every publish is on the disk before it is answered, as the calls to the system show', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'rejoin-flushes-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const trace = join(directory, 'trace')
  const hub = await startHub(memoryHistory(), { directory: join(directory, 'log'), under: tracedTo(trace) })
  for (let count = 0; count < 50; count += 1) {
    const body = `${count}`.repeat(1 + (count % 5) * 1000)
    const response = await fetch(`http://127.0.0.1:${hub.port}/publish/orders`, { method: 'POST', body })
    expect(response.status).toBe(201)
    await response.text()
  }
  await hub.stop()
  expect(judgeFlushes(readFileSync(trace, 'utf8'))).toEqual({ answers: 50, early: [] })
})
