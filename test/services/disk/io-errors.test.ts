import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { checkHistory, formatReport, linesSource } from '../../faults/checker/checker.ts'
import { runIoErrors } from '../../faults/disk/io-errors.ts'
import { memoryHistory } from '../../faults/history/history.ts'

// Printed with every failure; set it to repeat a run. Timing is the machine's own, so a repetition is close, not equal.
const seed = Number(process.env.REJOIN_FAULTS_SEED ?? 1)

test('a disk that reports errors rejects publishes and says so, readers go on, and it recovers with the disk', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'rejoin-io-errors-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const history = memoryHistory()
  const { reasons, cutByErrors } = await runIoErrors({
    ...{ history, seed, directory, readers: 6, eventsPerSecond: 100, rejections: 20 },
    channels: ['orders/1', 'orders/2', 'stock'],
    patience: {
      client: { retryMs: 50, maxRetryMs: 300 },
      strict: { retryMs: 50, silenceMs: 55_000 },
      catchUpMs: 20_000,
    },
  })
  const report = checkHistory([linesSource('history', history.lines)])
  expect(report.passed, `seed ${seed}\n${formatReport(report)}`).toBe(true)
  expect(report.tally.gaps).toBe(0)
  expect(report.tally.rejected).toBeGreaterThanOrEqual(120)
  expect(cutByErrors).toBe(0)
  for (const reason of reasons)
    expect(reason).toMatch(/^status 503: .* the disk reports an error\. Fix this, then retry\.$/)
})
