import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { checkHistory, formatReport, linesSource } from '../checker/checker.ts'
import { memoryHistory } from '../history/history.ts'
import { serveHub } from '../hubs/served-hub.ts'
import { throughHub } from '../recorders/recorders.ts'
import { runTrims } from './trims.ts'

// Printed with every failure; set it to repeat a run. Timing is the machine's own, so a repetition is close, not equal.
const seed = Number(process.env.REJOIN_FAULTS_SEED ?? 1)

test('readers that come back while the log is trimmed go on where they were, or are told; and told only then (§3.2)', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'rejoin-trims-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const window = { maxEvents: 30, maxAgeMs: 24 * 3_600_000 }
  const served = await serveHub({ directory, window, hotBytes: 1, heartbeatMs: 200 })
  onTestFinished(served.close)
  const history = memoryHistory()
  const channels = ['prices/1', 'prices/2', 'prices/3', 'prices/4']
  await runTrims({
    ...{ history, seed, window, channels, port: served.port, readers: 8, eventsPerSecond: 400, returns: 8 },
    channelOf: (index) => channels[index % 4] as string,
    send: throughHub(served.hub),
    maxMs: 60_000,
    patience: {
      client: { retryMs: 20, maxRetryMs: 200 },
      strict: { retryMs: 20, silenceMs: 2000 },
      catchUpMs: 20_000,
    },
  })
  const report = checkHistory([linesSource('history', history.lines)])
  expect(report.passed, `seed ${seed}\n${formatReport(report)}`).toBe(true)
  expect(report.tally.faults).toBe(4 * 5 + 4 * 8)
  expect(report.tally.gaps).toBeGreaterThan(0)
  expect(report.tally.unjudgedGaps).toBe(0)
})
