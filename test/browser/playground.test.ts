import type { Page } from 'playwright-core'
import { type Serving, serve } from 'rejoin'
import { describe, expect, type TestContext, test } from 'vitest'
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
import { sharedChromium } from './support/shared-chromium.ts'

const chromium = sharedChromium()

test('a cut leaves gaps in the plain lane and none in Rejoin’s, and touches no other tab', async (context) => {
  const server = await startHub(context)
  const page = await openPlayground(context, server)
  const bystander = await openPlayground(context, server)
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
  const page = await openPlayground(context, server)
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
  const page = await openPlayground(context, server)
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
  const page = await openPlayground(context, server)
  await press(page, 'Restart the stream')
  await page.getByText('Rejoin was sent the').waitFor()
  await page.locator('.pane').getByText('event: close').waitFor()
  expect(await countsOf(page, 'rejoin')).toMatchObject({ duplicates: 0, announced: 0, missing: 0 })
})

test('a slow reader falls behind, loses nothing, and catches up', async (context) => {
  const server = await startHub(context)
  const page = await openPlayground(context, server)
  await press(page, 'Slow reader')
  await context.expect.poll(() => lagOf(page)).toBeGreaterThan(3)
  await press(page, 'Slow reader')
  await context.expect.poll(() => lagOf(page)).toBeLessThan(2)
  expect(await countsOf(page, 'rejoin')).toMatchObject({ duplicates: 0, announced: 0, missing: 0 })
})

test('a cut of a slow reader is over when its time is, and other troubles can be ordered', async (context) => {
  const server = await startHub(context)
  const page = await openPlayground(context, server)
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

test('a browser that visits again uses the channel that it had, and two of its tabs have one each', async (context) => {
  const server = await startHub(context)
  const tabs = await chromium.browser.newContext()
  context.onTestFinished(() => tabs.close())
  const receives = (page: Page) => context.expect.poll(() => receivedBy(page, 'rejoin')).toBeGreaterThan(0)
  const page = await tabs.newPage()
  await page.goto(server.url)
  await receives(page)
  const channelsOf = async () => (await server.hub.channels({ prefix: 'playground/' })).map(({ channel }) => channel)
  const before = await channelsOf()
  for (let visit = 0; visit < 3; visit += 1) {
    await page.goto('about:blank')
    await page.goto(server.url)
    await receives(page)
  }
  expect(await channelsOf()).toEqual(before)
  const other = await tabs.newPage()
  await other.goto(server.url)
  await receives(other)
  expect(await channelsOf()).toHaveLength(before.length + 1)
  expect(await countsOf(page, 'rejoin')).toMatchObject({ duplicates: 0, missing: 0 })
})

test('a cut of 30 s begins, and no other trouble can be ordered meanwhile', async (context) => {
  const server = await startHub(context)
  const page = await openPlayground(context, server)
  await press(page, 'Cut 30 s')
  await page.locator('#rejoin .state[data-state="away"]').waitFor()
  await press(page, 'Restart the stream')
  await page.getByText('Both lines are cut').waitFor()
  expect(await page.getByRole('button', { name: 'Cut 1 s' }).getAttribute('aria-disabled')).toBe('true')
})

test('an event of one’s own arrives, in a cut too', async (context) => {
  const server = await startHub(context)
  const page = await openPlayground(context, server)
  await press(page, 'Cut 1 s')
  await page.getByLabel('Text of your event').fill('hello from a tunnel')
  await page.getByLabel('Text of your event').press('Enter')
  await page.locator('.own li').getByText('hello from a tunnel').waitFor()
})

test('the code can be copied', async (context) => {
  const server = await startHub(context)
  const page = await openPlayground(context, server)
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await press(page, 'Copy')
  await page.getByRole('button', { name: 'Copied' }).waitFor()
  const code = await page.evaluate(() => navigator.clipboard.readText())
  expect(code.split('\n')).toHaveLength(6)
  expect(code).toContain(`connect('${server.url}/events/playground/`)
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

test('hostile text is shown as text, whatever part of an event it is', async (context) => {
  const server = await startHub(context)
  const page = await openPlayground(context, server)
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
  test.for(['light', 'dark'] as const)('it fits, and nobody is kept out of it (%s)', async (colorScheme, context) => {
    const server = await startHub(context)
    const page = await openPlayground(context, server, { viewport, colorScheme })
    await press(page, 'Cut 1 s')
    await page.getByText('Plain SSE has lost').waitFor()
    await expectNoSidewaysScroll(page)
    expect(await seriousBarriers(page)).toEqual([])
  })

  test('nothing moves while it runs', async (context) => {
    const server = await startHub(context)
    const page = await openPlayground(context, server, { viewport })
    await press(page, 'Stay away too long')
    await page.getByText('Rejoin was told first').waitFor()
    expect(await page.evaluate(layoutShift)).toBeLessThan(0.02)
  })
})

test('it weighs at most 200 KB', () => {
  expect(weightOf('playground')).toBeLessThan(200_000)
})

type Lane = 'plain' | 'rejoin'

/** A hub of the test's own: the tabs of a browser have six connections to it in all. */
async function startHub({ onTestFinished }: TestContext): Promise<Serving> {
  const server = await serve({ port: 0 })
  onTestFinished(() => server.close({ withinMs: 0 }))
  return server
}

/** Opens the playground and waits until numbers flow. */
async function openPlayground(context: TestContext, server: Serving, options: PageOptions = {}): Promise<Page> {
  const page = await openPage(context, chromium.tabs, server.url, options)
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
