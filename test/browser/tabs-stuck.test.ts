import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { openTabs } from './support/open-tabs.ts'
import { startPublishing } from './support/publisher.ts'
import { recordsOf, until } from './support/readers.ts'
import { plainChromium } from './support/shared-chromium.ts'

const chromium = plainChromium()

test('a handler of the leading tab that never settles keeps no event from the other tabs', async (context) => {
  const { tabs, site } = await openTabs(context, chromium.context, 3)
  const [leader, ...others] = tabs
  await leader!.evaluate(() => {
    void (async () => {
      for await (const _ of readers.tab!.stream) await new Promise(() => undefined)
    })()
  })
  const publisher = startPublishing(site, 400)
  // More than a tab holds for its handlers.
  await publisher.more(3000)
  const published = await publisher.finish()
  for (const tab of others) expect(await recordsOf(tab)).toEqual({ tab: published })
  // One for the tab that is stuck, and one for all the others.
  await expect.poll(() => site.hub.readers('numbers')).toBeLessThanOrEqual(2)
  await until(leader!, () => readers.tab!.stream.state.stale)
})

test('a handler of the leading tab that takes all of its time makes no other tab late', async (context) => {
  const { tabs, site } = await openTabs(context, chromium.context, 3)
  const [leader, ...others] = tabs
  await leader!.evaluate(() => {
    readers.tab!.stream.on('*', () => {
      const end = Date.now() + 50
      while (Date.now() < end);
    })
  })
  const publisher = startPublishing(site, 100)
  await publisher.more(300)
  const published = await publisher.finish()
  const finishedAt = performance.now()
  for (const tab of others) await until(tab, () => gotOf('tab').at(-1) === 'end')
  const lateMs = performance.now() - finishedAt
  console.log(`the tab that reads is too slow: the others have everything after ${Math.round(lateMs)} ms`)
  // The slow tab needs 15 s for these events, and they were published in 3 s.
  expect(lateMs).toBeLessThan(6000)
  await until(leader!, () => gotOf('tab').at(-1) === 'end')
  for (const tab of tabs) expect(await recordsOf(tab)).toEqual({ tab: published })
  await expect.poll(() => site.hub.readers('numbers')).toBe(1)
})

test('when the leading tab hangs, one of the others says so, and reads on for all', async (context) => {
  const { tabs, site } = await openTabs(context, chromium.context, 4)
  const [leader, ...others] = tabs
  const publisher = startPublishing(site)
  await publisher.more(30)
  const before = site.requests.length
  const hungAt = performance.now()
  const hung = hang(leader!, 20_000)
  await expect.poll(() => site.requests.length).toBeGreaterThan(before)
  const tookMs = site.requests[before]!.at - hungAt
  await publisher.more(30)
  const number = publisher.published.length - 1
  for (const tab of others) await until(tab, (n) => gotOf('tab').includes(String(n)), number)
  expect(performance.now() - hungAt).toBeLessThan(20_000)
  // A connection of its own for each tab would take all that a browser has for a host.
  expect(site.requests.length).toBe(before + 1)
  const saidSo = await Promise.all(
    others.map((tab) => tab.evaluate(() => readers.tab!.states.some(({ stale }) => stale))),
  )
  expect(saidSo).toContain(true)
  for (const tab of others) await until(tab, () => !readers.tab!.stream.state.stale)
  await hung
  const published = await publisher.finish()
  for (const tab of tabs) expect(await recordsOf(tab)).toEqual({ tab: published })
  await expect.poll(() => site.hub.readers('numbers')).toBe(1)
  console.log(`the tab that reads hangs: another reads after ${Math.round(tookMs)} ms`)
  expect(tookMs).toBeLessThanOrEqual(10_000)
})

/** Nothing runs in the tab for so long. */
function hang(tab: Page, ms: number): Promise<void> {
  return tab.evaluate((ms) => {
    const end = Date.now() + ms
    while (Date.now() < end);
  }, ms)
}
