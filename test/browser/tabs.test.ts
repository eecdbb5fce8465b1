import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { openTabs } from './support/open-tabs.ts'
import { startPublishing } from './support/publisher.ts'
import { recordsOf } from './support/readers.ts'
import { plainChromium } from './support/shared-chromium.ts'

// Alone, because another tab has to read at once. Cuts are in tabs-cuts.test.ts.
// The same with threads for tabs, and with random histories: test/faults/tabs.

const chromium = plainChromium()

const ends: Record<string, (leader: Page) => Promise<unknown>> = {
  'is closed': (leader) => leader.close(),
  crashes: crash,
  'is frozen': freeze,
  'goes to another page': (leader) => leader.goto('about:blank'),
}

test.for(Object.keys(ends))(
  'when the tab that reads %s, another reads on at once, and none misses an event',
  async (end, context) => {
    const { tabs, site } = await openTabs(context, chromium.context, 3)
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
