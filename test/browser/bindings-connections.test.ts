import { beforeAll, expect, type TestContext, test } from 'vitest'
import { type BundledPage, bundlePage } from './support/bundled-page.ts'
import { until } from './support/readers.ts'
import { sharedChromium } from './support/shared-chromium.ts'
import { openStage } from './support/stage.ts'

// How many connections a page takes. Over HTTP/1.1 a browser has six for each host, and the seventh request waits.

declare global {
  var shown: number[]
  function mountMany(): void
  function mountSearch(): void
  function setHidden(isHidden: boolean): void
  function setQuery(query: string): void
}

const chromium = sharedChromium()
let bundle: BundledPage

beforeAll(async () => {
  bundle = await bundlePage('components')
}, 60_000)

test.concurrent('thirty components that React hides and shows again read on together, on one connection', async (context) => {
  const { page, site, streams } = await open(context)
  await page.evaluate(() => mountMany())
  await page.getByRole('img', { name: 'Live' }).waitFor()
  const publish = async (count: number) => {
    for (let number = 0; number < count; number++) await site.hub.publish('numbers', { data: number })
  }
  await publish(3)
  await until(page, () => shown.every((count) => count === 3))
  for (const expected of [203, 403, 603]) {
    await page.evaluate(() => setHidden(true))
    await publish(200)
    await until(page, (expected) => shown[0] === expected, expected)
    await page.evaluate(() => setHidden(false))
    await until(page, (expected) => shown.every((count) => count === expected), expected)
    // A page whose connections are all taken would wait here for ever.
    expect(await page.evaluate(async () => (await fetch('/components')).status)).toBe(200)
  }
  await context.expect.poll(() => site.hub.readers('numbers')).toBe(1)
  // One for the page, and one for each return.
  expect(streams().length).toBeLessThanOrEqual(4)
})

test.concurrent('a status that is attached again and again shows the stream of the page, and opens none', async (context) => {
  const { page, site, streams } = await open(context)
  await page.evaluate(() => mountMany())
  await page.getByRole('img', { name: 'Live' }).waitFor()
  await page.evaluate(() => {
    const element = document.createElement('rejoin-status')
    element.setAttribute('src', '/events/numbers')
    document.body.append(element)
  })
  const live = page.locator('rejoin-status').getByRole('img', { name: 'Live' })
  for (let time = 0; time < 10; time++) {
    await live.waitFor()
    const element = await page.evaluateHandle(() => document.querySelector('rejoin-status')!)
    await element.evaluate((it) => it.remove())
    await site.hub.publish('numbers', { data: time })
    await until(page, (count) => shown.every((it) => it === count), time + 1)
    await element.evaluate((it) => document.body.append(it))
  }
  await live.waitFor()
  expect(streams()).toHaveLength(1)
})

test.concurrent('a URL that changes sixty times while somebody types is opened a few times', async (context) => {
  const { page, streams } = await open(context)
  await page.evaluate(async () => {
    mountSearch()
    await new Promise((resolve) => setTimeout(resolve, 100))
    for (let length = 1; length <= 60; length++) {
      setQuery('x'.repeat(length))
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  })
  await page.getByText(`${'x'.repeat(60)} connected`).waitFor()
  expect(streams().at(-1)?.url).toContain('x'.repeat(60))
  expect(streams().length).toBeLessThanOrEqual(10)
})

async function open(context: TestContext) {
  const { page, site } = await openStage(context, chromium.tabs, { intercept: bundle.serve }, '/components')
  const streams = () => site.requests.filter(({ url }) => url.startsWith('/events/'))
  return { page, site, streams }
}
