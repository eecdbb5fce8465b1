import { expect, test } from 'vitest'
import { checkHistory, formatReport, linesSource } from '../checker/checker.ts'
import { memoryHistory } from '../history/history.ts'
import { serveHub } from '../hubs/served-hub.ts'
import { throughHub } from '../recorders/recorders.ts'
import { runPhone } from './phone.ts'

// Printed with every failure; set it to repeat a run. Timing is the machine's own, so a repetition is close, not equal.
const seed = Number(process.env.REJOIN_FAULTS_SEED ?? 1)

test('eight seconds of a phone’s day, tunnels and sleep and other networks, lose, repeat and hide nothing', async (context) => {
  const window = { maxEvents: 20_000, maxAgeMs: 300_000 }
  const { hub, port, close } = await serveHub({ heartbeatMs: 100, window })
  context.onTestFinished(close)
  const history = memoryHistory()
  await runPhone({
    ...{ history, seed, port, window, phones: 6, eventsPerSecond: 100, forMs: 8000 },
    send: throughHub(hub),
    client: { retryMs: 50, maxRetryMs: 300 },
    // A client that does not know the heartbeat yet waits for half a minute.
    catchUpMs: 40_000,
  })
  const report = checkHistory([linesSource('history', history.lines)])
  expect(report.passed, `seed ${seed}\n${formatReport(report)}`).toBe(true)
  expect(report.tally.faults).toBeGreaterThan(12)
  expect(report.tally.gaps).toBe(0)
})
