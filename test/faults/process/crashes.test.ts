import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { checkHistory, formatReport, linesSource } from '../checker/checker.ts'
import type { Patience } from '../crowds/crowd.ts'
import { memoryHistory } from '../history/history.ts'
import { runClockSteps } from './clock-steps.ts'
import { runKills } from './kills.ts'
import { runPauses } from './pauses.ts'

// Printed with every failure; set it to repeat a run. Timing is the machine's own, so a repetition is close, not equal.
const seed = Number(process.env.REJOIN_FAULTS_SEED ?? 1)

const patience: Patience = {
  client: { retryMs: 50, maxRetryMs: 300 },
  strict: { retryMs: 50, silenceMs: 2000 },
  catchUpMs: 20_000,
}
const window = { maxEvents: 20_000, maxAgeMs: 24 * 3_600_000 }
const hub = { heartbeatMs: 200 }
const channels = ['orders/1', 'orders/2', 'stock']

// One after the other: together they would take each other's processor, and the time they need would say nothing.
test('rejoin serve, killed five times by SIGKILL, keeps every event it acknowledged, and its readers go on', async () => {
  const { field, verdict } = prepare({ readers: 12, eventsPerSecond: 150 })
  const outcome = await runKills({ ...field, cycles: 5, betweenMs: [600, 1600] })
  const { tally } = verdict()
  expect(tally.faults).toBe(5)
  expect(tally.gaps).toBe(0)
  expect(tally.unanswered).toBe(0)
  expect(outcome.receivedMs).toBeDefined()
})

test('rejoin serve, killed while it lets its readers go, keeps every event it acknowledged', async () => {
  const { field, verdict } = prepare({ readers: 12, eventsPerSecond: 150 })
  // Twelve readers are let go within 60 ms, and the log is closed soon after.
  const outcome = await runKills({ ...field, cycles: 5, betweenMs: [300, 600], whileStoppingMs: 60 })
  expect(outcome.whileStopping).toBeGreaterThan(0)
  const { tally } = verdict()
  expect(tally.gaps).toBe(0)
  expect(tally.unanswered).toBe(0)
})

test('a hub that stands still for one and for three seconds loses nothing', async () => {
  const { field, verdict } = prepare({ readers: 8, eventsPerSecond: 100 })
  await runPauses({ ...field, channels, pauses: [1, 3], betweenMs: 300 })
  expect(verdict().tally.gaps).toBe(0)
})

test('a clock that is set back and forth makes no id go back, while the hub runs or between two runs (§2.2)', async () => {
  const { field, verdict } = prepare({ readers: 6, eventsPerSecond: 100 })
  await runClockSteps({ ...field, channels, stepsMs: [-60_000, 3_600_000, -3_600_000, 0], betweenMs: 300 })
  const { tally } = verdict()
  expect(tally.faults).toBe(8)
  expect(tally.gaps).toBe(0)
})

function prepare(load: { readers: number; eventsPerSecond: number }) {
  const directory = mkdtempSync(join(tmpdir(), 'rejoin-crashes-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const history = memoryHistory()
  return {
    field: { ...load, history, seed, window, patience, hub, directory },
    verdict() {
      const report = checkHistory([linesSource('history', history.lines)])
      expect(report.passed, `seed ${seed}\n${formatReport(report)}`).toBe(true)
      return report
    },
  }
}
