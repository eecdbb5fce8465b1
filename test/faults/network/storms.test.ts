import { expect, test } from 'vitest'
import { checkHistory, formatReport, linesSource } from '../checker/checker.ts'
import { memoryHistory } from '../history/history.ts'
import { serveHub } from '../hubs/served-hub.ts'
import { throughHttp } from '../recorders/recorders.ts'
import { runStorms } from './storms.ts'

const seed = Number(process.env.REJOIN_FAULTS_SEED ?? 1)
const window = { maxEvents: 20_000, maxAgeMs: 300_000 }

test('readers that are all cut and return at once miss nothing, get nothing twice, and cost the others nothing', async (context) => {
  const { port, close } = await serveHub({ heartbeatMs: 1000, window })
  context.onTestFinished(close)
  const history = memoryHistory()
  await runStorms({
    ...{ history, seed, port, window, send: throughHttp(`http://127.0.0.1:${port}`) },
    storms: 3,
    readers: 24,
    stay: 4,
    awayMs: 200,
    eventsPerSecond: 50,
    patience: {
      client: { retryMs: 50, maxRetryMs: 300 },
      strict: { retryMs: 50, silenceMs: 5000 },
      catchUpMs: 30_000,
    },
  })
  const report = checkHistory([linesSource('history', history.lines)])
  expect(report.passed, `seed ${seed}\n${formatReport(report)}`).toBe(true)
  expect(report.tally.faults).toBe(3)
  expect(report.tally.gaps).toBe(0)
})
