import { expect, test } from 'vitest'
import { openTabs } from './support/open-tabs.ts'
import { startPublishing } from './support/publisher.ts'
import { recordsOf } from './support/readers.ts'
import { plainChromium } from './support/shared-chromium.ts'

const chromium = plainChromium()

test.for([2, 5])(
  '%i tabs read through one connection, across cuts, each with every event once',
  async (count, context) => {
    const { tabs, site, proxy } = await openTabs(context, chromium.context, count)
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
