import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { createRandom } from '@rejoin/hub/testing'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { launchChromium } from './support/chromium.ts'
import { startPublishing } from './support/publisher.ts'
import { areConnected, areIn, each, openReaders, recordsOf, until } from './support/readers.ts'
import { openStage } from './support/stage.ts'

// A hundred take two minutes: CYCLES=100.
const cycles = Number(process.env.CYCLES ?? 20)
// Printed with every failure; set it to repeat a run. Timing is the machine's own, so a repetition is close, not equal.
const seed = Number(process.env.REJOIN_FAULTS_SEED ?? 1)

test(`${cycles} cuts and restarts at random moments of 200 events/s cost no reader an event, and little time`, {
  timeout: 30_000 + cycles * 5000,
}, async (context) => {
  const random = createRandom(seed)
  const directory = await mkdtemp(join(tmpdir(), 'rejoin-cycles-'))
  context.onTestFinished(() => rm(directory, { recursive: true }))
  const browser = await launchChromium()
  context.onTestFinished(() => browser.close())
  const { site, proxy, page } = await openStage(context, browser, { log: () => lmdbLog(directory) })
  await openReaders(page, {})
  await watchResumes(page)
  const publisher = startPublishing(site, 200)

  for (let cycle = 0; cycle < cycles; cycle += 1) {
    await publisher.more(10 + Math.floor(random() * 60))
    if (random() < 0.5) {
      proxy.cutAll(random() < 0.5 ? 'reset' : 'fin')
    } else {
      await site.stop()
      await areIn(page, 'backoff')
      await site.start()
    }
    await haveResumed(page, cycle + 1)
    await areConnected(page)
    await forgetFailures(page)
  }

  const published = await publisher.finish()
  expect(await recordsOf(page), `seed ${seed}`).toEqual(each(published))
  const all = await page.evaluate(() => resumes)
  const took = median(all.map(({ tookMs }) => tookMs))
  // A wait is what the hub asked for and up to 200 ms of jitter, half of that in the median; 250 ms are allowed for both.
  const over = 100 + median(all.map(({ tookMs, waitMs }) => tookMs - waitMs))
  console.log(
    `${cycles} cycles, ${published.length} events, ${all.length} resumes: median ${took} ms, which is retry + ${over} ms`,
  )
  expect(all.length).toBeGreaterThanOrEqual(2 * cycles)
  expect(over).toBeLessThanOrEqual(250)
})

declare global {
  var resumes: { name: string; tookMs: number; waitMs: number }[]
}

/** Notes how long each reader takes from a loss to a connection that has proved itself, and how long it meant to wait. */
async function watchResumes(page: Page): Promise<void> {
  await page.evaluate(() => {
    globalThis.resumes = []
    for (const [name, { stream }] of Object.entries(readers)) {
      let lost: { at: number; waitMs: number } | undefined
      stream.onState(({ state, stale, nextRetryAt }) => {
        const now = Date.now()
        if (nextRetryAt !== null) lost ??= { at: now, waitMs: nextRetryAt - now }
        if (!lost || state !== 'connected' || stale) return
        resumes.push({ name, tookMs: now - lost.at, waitMs: lost.waitMs })
        lost = undefined
      })
    }
  })
}

/** Resolves when the readers that hold a stream open have lost it, and have another, so many times. */
async function haveResumed(page: Page, times: number): Promise<void> {
  await until(
    page,
    (times) =>
      ['fetch', 'event-source'].every((reader) => resumes.filter(({ name }) => name === reader).length >= times),
    times,
  )
}

/** What five seconds of a good stream would do: the next loss is a first one again, and not one of a server that flaps. */
async function forgetFailures(page: Page): Promise<void> {
  await page.evaluate(() => dispatchEvent(new Event('online')))
  await until(page, () => Object.values(readers).every(({ stream }) => stream.state.attempt === 0))
}

function median(values: number[]): number {
  return Math.round(values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN)
}
