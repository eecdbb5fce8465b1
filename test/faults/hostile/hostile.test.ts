import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type Certificate, makeCertificate, writeCertificate } from '../../support/certificate.ts'
import { checkHistory, formatReport, linesSource } from '../checker/checker.ts'
import { memoryHistory } from '../history/history.ts'
import { type AttackCost, allAttacks, allHttp2Attacks, runHostile } from './hostile.ts'

// Printed with every failure; set it to repeat a run. Timing is the machine's own, so a repetition is close, not equal.
const seed = Number(process.env.REJOIN_FAULTS_SEED ?? 1)

test('rejoin serve, attacked in every way at once, stays up, stays small, and costs its honest readers no event', async () => {
  await attackAtOnce({ names: allAttacks })
}, 120_000)

const certificate = makeCertificate()

test.skipIf(!certificate)(
  'rejoin serve with TLS, attacked over HTTP/2, stays up, stays small, and costs its honest readers no event (needs openssl)',
  async () => {
    await attackAtOnce({ names: allHttp2Attacks, certificate })
  },
  120_000,
)

async function attackAtOnce({
  names,
  certificate,
}: {
  names: readonly string[]
  certificate?: Certificate | undefined
}) {
  const folder = mkdtempSync(join(tmpdir(), 'rejoin-hostile-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const directory = join(folder, 'log')
  const tls = certificate && writeCertificate(folder, certificate)
  const history = memoryHistory()
  const costs: AttackCost[] = []
  const outcome = await runHostile({
    ...{ history, seed, readers: 10, eventsPerSecond: 20, channels: 2000, directory, strength: 0.2, names, tls },
    ...{ forMs: 0, allForMs: 2000, restMs: 100, recoverMs: 0, onCost: (cost) => costs.push(cost) },
    patience: { client: {}, strict: { silenceMs: 60_000 }, catchUpMs: 45_000 },
  })
  const report = checkHistory([linesSource('history', history.lines)])
  expect(report.passed, `seed ${seed}\n${formatReport(report)}`).toBe(true)
  expect(outcome.deaths).toEqual([])
  expect(outcome.keptKeys).toBe(true)
  // 32 at a time, and those that the webhook has yet to see ended.
  expect(outcome.mostCalls).toBeLessThanOrEqual(64)
  expect(costs).toHaveLength(1)
  expect(costs[0]?.deliveries).toBeGreaterThan(10)
  // How fast it was is a matter of the machine, which has other tests to run. How much it kept is not.
  expect(costs[0]?.rss).toBeLessThan(400e6)
}
