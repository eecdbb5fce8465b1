import type { Page } from 'playwright-core'
import { expect, type TestContext, test } from 'vitest'
import { startPublishing } from './support/publisher.ts'
import { areConnected, hasty, recordsOf, visit } from './support/readers.ts'
import { plainChromium } from './support/shared-chromium.ts'
import { openStage, type Stage } from './support/stage.ts'

// The same with threads for tabs, and with random histories: test/faults/tabs.

const chromium = plainChromium()

test.for([2, 5])(
  '%i tabs read through one connection, across cuts, each with every event once',
  async (count, context) => {
    const { tabs, site, proxy } = await openTabs(context, count)
    await expect.poll(() => site.hub.readers('numbers')).toBe(1)
    const publisher = startPublishing(site)
    for (let cuts = 0; cuts < 3; cuts += 1) {
      await publisher.more(30)
      proxy.cutAll('reset')
    }
    await publisher.more(30)
    const published = await publisher.finish()
    for (const tab of tabs) expect(await recordsOf(tab)).toEqual({ tab: published })
    await expect.poll(() => site.hub.readers('numbers')).toBe(1)
  },
)

const ends: Record<string, (leader: Page) => Promise<unknown>> = {
  'is closed': (leader) => leader.close(),
  crashes: crash,
  'is frozen': freeze,
  'goes to another page': (leader) => leader.goto('about:blank'),
}

test.for(Object.keys(ends))(
  'when the tab that reads %s, another reads on at once, and none misses an event',
  async (end, context) => {
    const { tabs, site } = await openTabs(context, 3)
    const [leader, ...others] = tabs
    const publisher = startPublishing(site)
    await publisher.more(30)
    const before = site.requests.length
    await ends[end]!(leader!)
    const goneAt = performance.now()
    await expect.poll(() => site.requests.length).toBe(before + 1)
    const tookMs = site.requests[before]!.at - goneAt
    await publisher.more(30)
    const published = await publisher.finish()
    for (const tab of others) expect(await recordsOf(tab)).toEqual({ tab: published })
    await expect.poll(() => site.hub.readers('numbers')).toBe(1)
    console.log(`the tab that reads ${end}: another reads after ${Math.round(tookMs)} ms`)
    // Without the lock it would take two missed heartbeats, which are seven seconds.
    expect(tookMs).toBeLessThanOrEqual(1000)
  },
)

/** Tabs of one browser, each with a reader, opened one after the other: the first one reads for all. */
async function openTabs(context: TestContext, count: number): Promise<Stage & { readonly tabs: readonly Page[] }> {
  const stage = await openStage(context, chromium.context)
  const tabs = [stage.page]
  while (tabs.length < count) {
    const tab = await chromium.context.newPage()
    context.onTestFinished(() => tab.close())
    await visit(tab, `http://127.0.0.1:${stage.proxy.port}/`)
    tabs.push(tab)
  }
  for (const tab of tabs) {
    await tab.evaluate((options) => read('tab', options), { ...hasty, shareAcrossTabs: 'user' })
    await areConnected(tab)
  }
  return { ...stage, tabs }
}

async function crash(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page)
  const crashed = new Promise((resolve) => page.once('crash', resolve))
  // A tab that has crashed does not answer.
  session.send('Page.crash').catch(() => undefined)
  await crashed
}

async function freeze(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page)
  await session.send('Page.setWebLifecycleState', { state: 'frozen' })
}
