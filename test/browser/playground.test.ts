import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { openPage, press } from './support/page-check.ts'
import { countsOf, type Lane, lagOf, openPlayground, receivedBy, startHub } from './support/playground.ts'
import { startServer } from './support/server-process.ts'
import { sharedChromium } from './support/shared-chromium.ts'

// Alone, because the two lanes have to keep up with each other. All else about the page is in playground-page.test.ts.
const chromium = sharedChromium()

test('a cut leaves gaps in the plain lane and none in Rejoin’s, and touches no other tab', async (context) => {
  const server = await startHub(context)
  const page = await openPlayground(context, chromium.tabs, server)
  const bystander = await openPlayground(context, chromium.tabs, server)
  await press(page, 'Cut both for 5 s')
  await page.getByText('Both lines are cut').waitFor()
  await page.getByText(/back in \d/).waitFor()
  await page.getByText('Plain SSE has lost').waitFor()

  const plain = await countsOf(page, 'plain')
  expect(plain).toMatchObject({ replayed: 0, duplicates: 0, announced: 0 })
  expect(plain.missing).toBeGreaterThan(0)
  expect(await squaresOf(page, 'plain', 'missing')).toBe(plain.missing)

  const rejoin = await countsOf(page, 'rejoin')
  expect(rejoin).toMatchObject({ duplicates: 0, announced: 0, missing: 0 })
  expect(rejoin.replayed).toBeGreaterThan(0)
  expect(await squaresOf(page, 'rejoin', 'replayed')).toBe(rejoin.replayed)
  expect(await squaresOf(page, 'rejoin', 'missing')).toBe(0)

  for (const lane of ['plain', 'rejoin'] as const) {
    expect(await countsOf(bystander, lane)).toMatchObject({ replayed: 0, duplicates: 0, missing: 0 })
  }
})

test('the wire shows the id that Rejoin came back with, and what it was sent', async (context) => {
  const server = await startHub(context)
  const page = await openPlayground(context, chromium.tabs, server)
  await press(page, 'Cut 1 s')
  await page.getByText('Plain SSE has lost').waitFor()
  const wire = await page.locator('.pane [data-line]').allTextContents()
  const asked = wire.findLastIndex((line) => line.startsWith('Last-Event-ID: '))
  const cursor = wire[asked]?.replace('Last-Event-ID: ', '')
  expect(wire.slice(0, asked)).toContain(`id: ${cursor}`)
  expect(wire.slice(asked)).toContain('event: number')
  await page.getByText(`Last-Event-ID: ${cursor}' `).waitFor()
})

test('a reader that returns too late is told of a gap, and gets a snapshot', async (context) => {
  const server = await startHub(context)
  const page = await openPlayground(context, chromium.tabs, server)
  await press(page, 'Stay away too long')
  await page.getByText('Rejoin was told first: sync-required, reason “forced”, with the snapshot {"latest":').waitFor()
  await page.locator('.pane').getByText('event: sync-required').waitFor()
  const rejoin = await countsOf(page, 'rejoin')
  expect(rejoin.missing).toBe(0)
  expect(rejoin.announced).toBeGreaterThan(0)
  expect(await squaresOf(page, 'rejoin', 'announced')).toBe(rejoin.announced)
  expect((await countsOf(page, 'plain')).missing).toBeGreaterThan(0)
})

test('a restart of the stream costs Rejoin nothing', async (context) => {
  const server = await startHub(context)
  const page = await openPlayground(context, chromium.tabs, server)
  await press(page, 'Restart the stream')
  await page.getByText('Rejoin was sent the').waitFor()
  await page.locator('.pane').getByText('event: close').waitFor()
  expect(await countsOf(page, 'rejoin')).toMatchObject({ duplicates: 0, announced: 0, missing: 0 })
})

test('a slow reader falls behind, loses nothing, and catches up', async (context) => {
  const server = await startHub(context)
  const page = await openPlayground(context, chromium.tabs, server)
  await press(page, 'Slow reader')
  await context.expect.poll(() => lagOf(page)).toBeGreaterThan(3)
  await press(page, 'Slow reader')
  await context.expect.poll(() => lagOf(page)).toBeLessThan(2)
  expect(await countsOf(page, 'rejoin')).toMatchObject({ duplicates: 0, announced: 0, missing: 0 })
})

test('a cut of a slow reader is over when its time is, and other troubles can be ordered', async (context) => {
  const server = await startHub(context)
  const page = await openPlayground(context, chromium.tabs, server)
  await press(page, 'Slow reader')
  await context.expect.poll(() => lagOf(page)).toBeGreaterThan(3)
  await press(page, 'Cut 1 s')
  await page.getByText('Rejoin is slow, and gets all').waitFor()
  expect(await page.getByRole('button', { name: 'Cut 1 s' }).getAttribute('aria-disabled')).not.toBe('true')
  await press(page, 'Restart the stream')
  await page.getByText('Rejoin is slow, and gets all').waitFor()
  await press(page, 'Slow reader')
  await context.expect.poll(() => lagOf(page)).toBeLessThan(2)
  expect(await countsOf(page, 'rejoin')).toMatchObject({ duplicates: 0, announced: 0, missing: 0 })
})

test('after a kill of the server, Rejoin goes on without a loss', async (context) => {
  const first = await startServer(context)
  const page = await openPage(context, chromium.tabs, first.url, { mayFail: /./ })
  await page.getByText('Both are connected').waitFor()
  await context.expect.poll(() => receivedBy(page, 'rejoin')).toBeGreaterThan(3)
  await first.kill()
  await page.locator('#rejoin .state[data-state="away"]').waitFor()
  await page.getByText('The server does not answer, so nothing is published meanwhile.').waitFor()
  await first.restart()
  await page.locator('#rejoin .state[data-state="connected"]').waitFor()
  await page.getByText('The server answers again, and Rejoin goes on where it was.').waitFor()
  const before = await receivedBy(page, 'rejoin')
  await context.expect.poll(() => receivedBy(page, 'rejoin')).toBeGreaterThan(before + 3)
  // What could not be published is not counted as that.
  await context.expect.poll(() => lagOf(page)).toBeLessThan(2)
  expect(await countsOf(page, 'rejoin')).toMatchObject({ duplicates: 0, announced: 0, missing: 0 })
})

function squaresOf(page: Page, lane: Lane, kind: string): Promise<number> {
  return page.locator(`#${lane} .squares [data-kind="${kind}"]`).count()
}
