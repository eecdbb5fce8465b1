import type { IncomingMessage } from 'node:http'
import type { WindowOptions } from '@rejoin/hub'
import { createRandom } from '@rejoin/hub/testing'
import { expect, type TestContext, test } from 'vitest'
import { openFaultProxy } from '../../support/fault-proxy/fault-proxy.ts'
import { checkHistory, formatReport, linesSource, type Report } from '../checker/checker.ts'
import type { Patience } from '../crowds/crowd.ts'
import { memoryHistory } from '../history/history.ts'
import { type ServedHubOptions, serveHub } from '../hubs/served-hub.ts'
import { throughHttp, throughHub } from '../recorders/recorders.ts'
import { runCuts } from './cuts.ts'
import { runDrops } from './drops.ts'

// Printed with every failure; set it to repeat a run. Timing is the machine's own, so a repetition is close, not equal.
const seed = Number(process.env.REJOIN_FAULTS_SEED ?? 1)

const patience: Patience = {
  client: { retryMs: 50, maxRetryMs: 300 },
  strict: { retryMs: 50, silenceMs: 1000 },
  catchUpMs: 15_000,
}
const window = { maxEvents: 20_000, maxAgeMs: 300_000 }

test.concurrent('fifty connections cut at random bytes lose, repeat and hide nothing (§4.3, §4.5)', async (context) => {
  const { field, verdict } = await openHub(context, { window })
  await runCuts({ ...field, readers: 10, cuts: 50, maxBytes: 12_000, earlyHangs: false, limitMs: 60_000 })
  const report = verdict()
  expect(report.tally.faults).toBe(50)
  expect(report.tally.gaps).toBe(0)
})

test.concurrent('a network that is gone for one and for five seconds loses nothing', async (context) => {
  const { field, verdict } = await openHub(context, { window })
  await runDrops({ ...field, readers: 8, drops: [1, 5] })
  expect(verdict().tally.gaps).toBe(0)
})

test.concurrent('a network that is gone for longer than the window reaches is followed by an announced gap', async (context) => {
  const { field, verdict } = await openHub(context, { window: { ...window, maxEvents: 20 }, hotBytes: 1 })
  await runDrops({ ...field, readers: 4, drops: [1] })
  const report = verdict()
  expect(report.tally.gaps).toBeGreaterThanOrEqual(4)
  expect(report.tally.unjudgedGaps).toBe(0)
})

test.concurrent('connections that deliver late, and a few bytes at a time, tear no frame when they are cut', async (context) => {
  const { field, verdict } = await openHub(context, { window })
  const toxics = { down: { latencyMs: 30, jitterMs: 20, slice: true }, up: { slice: true } }
  // Slices of a few bytes are the dearest way to move an event: fewer of them, and more time, on a machine that is busy.
  const calm = { ...patience, strict: { retryMs: 50, silenceMs: 5000 }, catchUpMs: 40_000 }
  const crumbs = { ...field, toxics, eventsPerSecond: 20, patience: calm }
  await runCuts({ ...crumbs, readers: 4, cuts: 12, maxBytes: 2000, earlyHangs: false, limitMs: 90_000 })
  expect(verdict().tally.faults).toBe(12)
})

test.concurrent('publishes that are cut off and sent again are there once (§5.5)', async (context) => {
  const { field, verdict } = await openHub(context, { window })
  const random = createRandom(seed)
  const proxy = await openFaultProxy({ target: { port: field.port }, random })
  context.onTestFinished(proxy.close)
  proxy.onLink((link) => {
    const direction = random() < 0.5 ? 'up' : 'down'
    const how = random() < 0.1 ? 'half-open' : 'reset'
    void link.cutAt(Math.floor(random() * 3000), how, direction)
  })
  const send = throughHttp(`http://127.0.0.1:${proxy.port}`, 500)
  await runDrops({ ...field, send, readers: 2, drops: [1, 1] })
  expect(verdict().tally.acknowledged).toBeGreaterThan(100)
  expect(proxy.cuts).toBeGreaterThan(10)
})

test.concurrent('a proxy that strips cursors is noticed by our client, and fools a plain reader', async (context) => {
  const tamper = ({ headers }: IncomingMessage) => {
    delete headers['last-event-id']
  }
  const { field, report } = await openHub(context, { window, tamper })
  await runDrops({ ...field, readers: 4, drops: [1] })
  const { counts, violations } = report()
  expect(counts['unannounced-gap']).toBeGreaterThan(0)
  expect(new Set(violations.map(({ message }) => message.split(' ')[0]))).toEqual(new Set(['strict-1', 'strict-3']))
})

/** The hub is closed with its own test: of those that run together each has to name the one it means. */
async function openHub({ onTestFinished }: TestContext, options: ServedHubOptions & { window: WindowOptions }) {
  const { hub, port, close } = await serveHub({ heartbeatMs: 100, ...options })
  onTestFinished(close)
  const history = memoryHistory()
  const report = () => checkHistory([linesSource('history', history.lines)])
  const { window } = options
  return {
    field: { history, seed, port, window, patience, send: throughHub(hub), eventsPerSecond: 200 },
    report,
    verdict(): Report {
      const checked = report()
      expect(checked.passed, `seed ${seed}\n${formatReport(checked)}`).toBe(true)
      return checked
    },
  }
}
