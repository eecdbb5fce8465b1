import type { Browser, Page } from 'playwright-core'
import { type Serving, serve } from 'rejoin'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { launchChromium } from './support/chromium.ts'
import {
  desktop,
  expectNoSidewaysScroll,
  foreignElements,
  hostileTexts,
  layoutShift,
  openPage,
  type PageOptions,
  phone,
  press,
  seriousBarriers,
  weightOf,
} from './support/page-check.ts'
import { startServer } from './support/server-process.ts'

let browser: Browser
let server: Serving

beforeAll(async () => {
  server = await serve({ port: 0 })
  browser = await launchChromium()
})

afterAll(async () => {
  await browser.close()
  await server.close()
})

test('a cut leaves holes in the plain lane and none in Rejoin’s, and touches no other tab', async () => {
  const page = await openPlayground()
  const bystander = await openPlayground()
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

test('the wire shows the id that Rejoin came back with, and what it was sent', async () => {
  const page = await openPlayground()
  await press(page, 'Cut 1 s')
  await page.getByText('Plain SSE has lost').waitFor()
  const wire = await page.locator('.pane [data-line]').allTextContents()
  const asked = wire.findLastIndex((line) => line.startsWith('Last-Event-ID: '))
  const cursor = wire[asked]?.replace('Last-Event-ID: ', '')
  expect(wire.slice(0, asked)).toContain(`id: ${cursor}`)
  expect(wire.slice(asked)).toContain('event: number')
  await page.getByText(`Last-Event-ID: ${cursor}' `).waitFor()
})

test('whoever stays away too long is told so, and gets a snapshot', async () => {
  const page = await openPlayground()
  await press(page, 'Stay away too long')
  await page.getByText('Rejoin was told first: sync-required, reason “forced”, with the snapshot {"latest":').waitFor()
  await page.locator('.pane').getByText('event: sync-required').waitFor()
  const rejoin = await countsOf(page, 'rejoin')
  expect(rejoin.missing).toBe(0)
  expect(rejoin.announced).toBeGreaterThan(0)
  expect(await squaresOf(page, 'rejoin', 'announced')).toBe(rejoin.announced)
  expect((await countsOf(page, 'plain')).missing).toBeGreaterThan(0)
})

test('a restart of the stream costs Rejoin nothing', async () => {
  const page = await openPlayground()
  await press(page, 'Restart the stream')
  await page.getByText('Rejoin was sent the').waitFor()
  await page.locator('.pane').getByText('event: close').waitFor()
  expect(await countsOf(page, 'rejoin')).toMatchObject({ duplicates: 0, announced: 0, missing: 0 })
})

test('a slow reader falls behind, loses nothing, and catches up', async () => {
  const page = await openPlayground()
  await press(page, 'Slow reader')
  await expect.poll(() => lagOf(page)).toBeGreaterThan(3)
  await press(page, 'Slow reader')
  await expect.poll(() => lagOf(page)).toBeLessThan(2)
  expect(await countsOf(page, 'rejoin')).toMatchObject({ duplicates: 0, announced: 0, missing: 0 })
})

test('a cut of a slow reader is over when its time is, and other troubles can be ordered', async () => {
  const page = await openPlayground()
  await press(page, 'Slow reader')
  await expect.poll(() => lagOf(page)).toBeGreaterThan(3)
  await press(page, 'Cut 1 s')
  await page.getByText('Rejoin is slow, and gets all').waitFor()
  expect(await page.getByRole('button', { name: 'Cut 1 s' }).getAttribute('aria-disabled')).not.toBe('true')
  await press(page, 'Restart the stream')
  await page.getByText('Rejoin is slow, and gets all').waitFor()
  await press(page, 'Slow reader')
  await expect.poll(() => lagOf(page)).toBeLessThan(2)
  expect(await countsOf(page, 'rejoin')).toMatchObject({ duplicates: 0, announced: 0, missing: 0 })
})

test('a browser that visits again uses the channel that it had, and two of its tabs have one each', async () => {
  const context = await browser.newContext()
  onTestFinished(() => context.close())
  const page = await context.newPage()
  await page.goto(server.url)
  await expect.poll(async () => (await countsOf(page, 'rejoin')).received).toBeGreaterThan(0)
  const channelsOf = async () => (await server.hub.channels({ prefix: 'playground/' })).map(({ channel }) => channel)
  const before = await channelsOf()
  for (let visit = 0; visit < 3; visit += 1) {
    await page.goto('about:blank')
    await page.goto(server.url)
    await expect.poll(async () => (await countsOf(page, 'rejoin')).received).toBeGreaterThan(0)
  }
  expect(await channelsOf()).toEqual(before)
  const other = await context.newPage()
  await other.goto(server.url)
  await expect.poll(async () => (await countsOf(other, 'rejoin')).received).toBeGreaterThan(0)
  expect(await channelsOf()).toHaveLength(before.length + 1)
  expect(await countsOf(page, 'rejoin')).toMatchObject({ duplicates: 0, missing: 0 })
})

test('a cut of 30 s begins, and no other trouble can be ordered meanwhile', async () => {
  const page = await openPlayground()
  await press(page, 'Cut 30 s')
  await page.locator('#rejoin .state[data-state="away"]').waitFor()
  await press(page, 'Restart the stream')
  await page.getByText('Both lines are cut').waitFor()
  expect(await page.getByRole('button', { name: 'Cut 1 s' }).getAttribute('aria-disabled')).toBe('true')
})

test('an event of one’s own arrives, in a cut too', async () => {
  const page = await openPlayground()
  await press(page, 'Cut 1 s')
  await page.getByLabel('Text of your event').fill('hello from a tunnel')
  await page.getByLabel('Text of your event').press('Enter')
  await page.locator('.own li').getByText('hello from a tunnel').waitFor()
})

test('the code can be copied', async () => {
  const page = await openPlayground()
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await press(page, 'Copy')
  await page.getByRole('button', { name: 'Copied' }).waitFor()
  const code = await page.evaluate(() => navigator.clipboard.readText())
  expect(code.split('\n')).toHaveLength(6)
  expect(code).toContain(`connect('${server.url}/events/playground/`)
})

test('after a kill of the server, Rejoin goes on without a loss', async () => {
  const first = await startServer()
  const page = await openPage(browser, first.url, { mayFail: /./ })
  await page.getByText('Both are connected').waitFor()
  await expect.poll(() => receivedBy(page, 'rejoin')).toBeGreaterThan(3)
  await first.kill()
  await page.locator('#rejoin .state[data-state="away"]').waitFor()
  await page.getByText('The server does not answer, so nothing is published meanwhile.').waitFor()
  await first.restart()
  await page.locator('#rejoin .state[data-state="connected"]').waitFor()
  await page.getByText('The server answers again, and Rejoin goes on where it was.').waitFor()
  const before = await receivedBy(page, 'rejoin')
  await expect.poll(() => receivedBy(page, 'rejoin')).toBeGreaterThan(before + 3)
  // What could not be published is not counted as that.
  await expect.poll(() => lagOf(page)).toBeLessThan(2)
  expect(await countsOf(page, 'rejoin')).toMatchObject({ duplicates: 0, announced: 0, missing: 0 })
})

test('hostile text is shown as text, whatever part of an event it is', async () => {
  const page = await openPlayground()
  const channel = (await page.getByText('/events/playground/').first().textContent())?.match(/playground\/\w+/)?.[0]
  for (const text of hostileTexts) {
    const types = new URLSearchParams({ type: text.replaceAll(/[\r\n]/g, ' ').slice(0, 60) })
    await fetch(`${server.url}/publish/${channel}?${types}`, { method: 'POST', body: text })
    await fetch(`${server.url}/publish/${channel}?type=own`, { method: 'POST', body: text })
    await page.locator('.own li span').first().getByText(text, { exact: true }).waitFor()
  }
  expect(await foreignElements(page)).toBe(0)
})

describe.each([
  ['a phone', phone],
  ['a desk', desktop],
])('on %s', (_name, viewport) => {
  test.each(['light', 'dark'] as const)('it fits, and nobody is kept out of it (%s)', async (colorScheme) => {
    const page = await openPlayground({ viewport, colorScheme })
    await press(page, 'Cut 1 s')
    await page.getByText('Plain SSE has lost').waitFor()
    await expectNoSidewaysScroll(page)
    expect(await seriousBarriers(page)).toEqual([])
  })

  test('nothing moves while it runs', async () => {
    const page = await openPlayground({ viewport })
    await press(page, 'Stay away too long')
    await page.getByText('Rejoin was told first').waitFor()
    expect(await page.evaluate(layoutShift)).toBeLessThan(0.02)
  })
})

test('the first number is there within a second', async () => {
  const page = await openPage(browser, server.url)
  const times: number[] = []
  // The best of three: a machine that is busy with something else says nothing about the page.
  for (let load = 0; load < 3; load++) {
    await page.reload()
    await page.locator('#rejoin [data-kind="live"]').first().waitFor()
    times.push(await page.evaluate(() => performance.now()))
  }
  expect(Math.min(...times)).toBeLessThan(1000)
})

test('it weighs at most 200 KB', () => {
  expect(weightOf('playground')).toBeLessThan(200_000)
})

type Lane = 'plain' | 'rejoin'

/** Opens the playground and waits until numbers flow. */
async function openPlayground(options: PageOptions = {}): Promise<Page> {
  const page = await openPage(browser, server.url, options)
  await page.getByText('Both are connected').waitFor()
  return page
}

async function countsOf(page: Page, lane: Lane): Promise<Record<string, number>> {
  const counts = await page
    .locator(`#${lane} [data-count]`)
    .evaluateAll((elements) =>
      (elements as HTMLElement[]).map(({ dataset, textContent }) => [dataset.count, Number(textContent)]),
    )
  return Object.fromEntries(counts)
}

async function receivedBy(page: Page, lane: Lane): Promise<number> {
  return (await countsOf(page, lane)).received ?? 0
}

async function lagOf(page: Page): Promise<number> {
  const { published = 0, received = 0 } = await countsOf(page, 'rejoin')
  return published - received
}

function squaresOf(page: Page, lane: Lane, kind: string): Promise<number> {
  return page.locator(`#${lane} .squares [data-kind="${kind}"]`).count()
}
