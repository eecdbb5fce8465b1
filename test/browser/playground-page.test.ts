import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import {
  desktop,
  expectNoSidewaysScroll,
  foreignElements,
  hostileTexts,
  layoutShift,
  phone,
  press,
  seriousBarriers,
  weightOf,
} from './support/page-check.ts'
import { countsOf, openPlayground, receivedBy, startHub } from './support/playground.ts'
import { sharedChromium } from './support/shared-chromium.ts'

// What the page shows and how it looks. Its two lanes, which have to keep up with each other, are in playground.test.ts.
const chromium = sharedChromium()

test('a browser that visits again uses the channel that it had, and two of its tabs have one each', async (context) => {
  const server = await startHub(context)
  const tabs = await chromium.browser.newContext()
  context.onTestFinished(() => tabs.close())
  const receives = (page: Page) => context.expect.poll(() => receivedBy(page, 'rejoin')).toBeGreaterThan(0)
  const page = await tabs.newPage()
  await page.goto(server.url)
  await receives(page)
  const channelsOf = async () =>
    (await server.hub.admin.channels({ prefix: 'playground/' })).map(({ channel }) => channel)
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
  const page = await openPlayground(context, chromium.tabs, server)
  await press(page, 'Cut 30 s')
  await page.locator('#rejoin .state[data-state="away"]').waitFor()
  await press(page, 'Restart the stream')
  await page.getByText('Both lines are cut').waitFor()
  expect(await page.getByRole('button', { name: 'Cut 1 s' }).getAttribute('aria-disabled')).toBe('true')
})

test('an event of one’s own arrives, in a cut too', async (context) => {
  const server = await startHub(context)
  const page = await openPlayground(context, chromium.tabs, server)
  await press(page, 'Cut 1 s')
  await page.getByLabel('Text of your event').fill('hello from a tunnel')
  await page.getByLabel('Text of your event').press('Enter')
  await page.locator('.own li').getByText('hello from a tunnel').waitFor()
})

test('the code can be copied', async (context) => {
  const server = await startHub(context)
  const page = await openPlayground(context, chromium.tabs, server)
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await press(page, 'Copy')
  await page.getByRole('button', { name: 'Copied' }).waitFor()
  const code = await page.evaluate(() => navigator.clipboard.readText())
  expect(code.split('\n')).toHaveLength(6)
  expect(code).toContain(`connect('${server.url}/events/playground/`)
})

test('hostile text is shown as text, whatever part of an event it is', async (context) => {
  const server = await startHub(context)
  const page = await openPlayground(context, chromium.tabs, server)
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
    const page = await openPlayground(context, chromium.tabs, server, { viewport, colorScheme })
    await press(page, 'Cut 1 s')
    await page.getByText('Plain SSE has lost').waitFor()
    // Its colours are judged at rest, and a button changes them when the trouble is over.
    await page.locator('button[aria-disabled="true"]').first().waitFor({ state: 'detached' })
    await expectNoSidewaysScroll(page)
    const cut = page.locator('pre').evaluateAll((all) => all.filter((code) => code.scrollWidth > code.clientWidth + 1))
    expect(await cut).toEqual([])
    expect(await seriousBarriers(page)).toEqual([])
  })

  test('nothing moves while it runs', async (context) => {
    const server = await startHub(context)
    const page = await openPlayground(context, chromium.tabs, server, { viewport })
    await press(page, 'Stay away too long')
    await page.getByText('Rejoin was told first').waitFor()
    expect(await page.evaluate(layoutShift)).toBeLessThan(0.02)
  })
})

test('it weighs at most 200 KB', () => {
  expect(weightOf('playground')).toBeLessThan(200_000)
})
