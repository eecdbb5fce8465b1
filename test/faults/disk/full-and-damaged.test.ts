import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { ServerDidNotStart } from '../../support/server-process.ts'
import { checkHistory, formatReport, linesSource } from '../checker/checker.ts'
import { memoryHistory } from '../history/history.ts'
import { startHub } from '../hubs/hub-process.ts'
import { runDamage } from './damage.ts'
import { mountSmallDisk, runFullDisk } from './full-disk.ts'

// Printed with every failure; set it to repeat a run. Timing is the machine's own, so a repetition is close, not equal.
const seed = Number(process.env.REJOIN_FAULTS_SEED ?? 1)
const isRoot = process.getuid?.() === 0

test.skipIf(!isRoot)(
  'a full disk rejects publishes and says so, readers go on, and space makes it whole again (needs root)',
  async () => {
    const disk = smallDisk(24)
    const history = memoryHistory()
    const outcome = await runFullDisk({
      ...{ history, seed, disk, readers: 6, eventsPerSecond: 200, bytes: 2000, rejections: 20 },
      channels: ['orders/1', 'orders/2', 'stock'],
      window: { maxEvents: 50_000, maxAgeMs: 24 * 3_600_000 },
      hub: { heartbeatMs: 200 },
      patience: {
        client: { retryMs: 50, maxRetryMs: 300 },
        strict: { retryMs: 50, silenceMs: 2000 },
        catchUpMs: 20_000,
      },
    })
    const report = checkHistory([linesSource('history', history.lines)])
    expect(report.passed, `seed ${seed}\n${formatReport(report)}`).toBe(true)
    expect(report.tally.gaps).toBe(0)
    expect(report.tally.rejected).toBeGreaterThanOrEqual(40)
    for (const reason of outcome.reasons) expect(reason).toMatch(/^status 503: .*(the disk is full|No space left)/)
  },
)

test.skipIf(!isRoot)(
  'a folder that cannot be written to is rejected with a reason, and not by a signal (needs root)',
  async () => {
    const disk = smallDisk(4)
    const directory = join(disk.path, 'log')
    const made = await startHub(memoryHistory(), { directory })
    await made.stop()
    disk.forbidWrites()
    const end = await startHub(memoryHistory(), { directory }).then(
      (hub) => hub.kill(),
      (error: ServerDidNotStart) => error.end,
    )
    expect(end.signal).toBeNull()
    expect(end.said).toMatch(/the file system is read-only/)
    disk.allowWrites()
    await (await startHub(memoryHistory(), { directory })).stop()
  },
)

test('one changed bit, or a missing end of the file, never leads to wrong data or to an unannounced loss', async () => {
  const outcomes = await runDamage({ directory: folder(), seed, flips: 40, aimed: 10, truncations: 10 })
  const wrong = outcomes.filter((outcome) => (outcome.wrong?.length ?? 0) > 0)
  expect(wrong, `seed ${seed}`).toEqual([])
  expect(outcomes.length).toBe(60)
})

function smallDisk(megabytes: number) {
  const disk = mountSmallDisk(join(folder(), 'disk'), megabytes)
  onTestFinished(() => disk.unmount())
  return disk
}

function folder(): string {
  const directory = mkdtempSync(join(tmpdir(), 'rejoin-disk-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  return directory
}
