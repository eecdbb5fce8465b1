import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { freeze } from './support/hidden-tab.ts'
import { startPublishing } from './support/publisher.ts'
import { until, visit } from './support/readers.ts'
import { plainChromium } from './support/shared-chromium.ts'
import { openStage } from './support/stage.ts'

const chromium = plainChromium()

test.for(['fetch', 'event-source', 'long-poll'])(
  'a worker whose page was frozen has every event that it slept through soon after it wakes, with %s',
  async (transport, context) => {
    // So rare that the silence of a stream that died in its sleep would be noticed only after the test.
    const { page, site } = await openStage(context, chromium.context, { heartbeatMs: 300_000 })
    await openWorker(page, 'Worker', transport)
    const publisher = startPublishing(site)
    await publisher.more(50)
    const thaw = await freeze(page)
    // Longer than a tick may be late.
    await publisher.more(600)
    await thaw()
    const published = await publisher.finish()
    expect(await recordOf(page)).toEqual(published)
  },
)

test('a shared worker reads once for two pages, through cuts, and goes on when one of them is closed', async (context) => {
  const { page, site, proxy } = await openStage(context, chromium.context)
  const other = await chromium.context.newPage()
  await visit(other, page.url())
  await openWorker(page, 'SharedWorker', 'fetch')
  await openWorker(other, 'SharedWorker', 'fetch')
  const publisher = startPublishing(site)
  for (let cut = 0; cut < 3; cut++) {
    await publisher.more(50)
    proxy.cutAll('reset')
  }
  expect(site.hub.readers('numbers')).toBeLessThanOrEqual(1)
  await other.close()
  await publisher.more(50)
  const published = await publisher.finish()
  expect(await recordOf(page)).toEqual(published)
})

declare global {
  var posted: string[]
}

async function openWorker(page: Page, kind: 'Worker' | 'SharedWorker', name: string): Promise<void> {
  await page.evaluate(
    ([kind, name]) => {
      globalThis.posted = []
      const options = { type: 'module', name } as const
      const worker =
        kind === 'Worker' ? new Worker('/page/worker.js', options) : new SharedWorker('/page/worker.js', options).port
      worker.onmessage = ({ data }: MessageEvent<string>) => posted.push(data)
    },
    [kind, name] as const,
  )
  await until(page, () => posted.includes('open'))
}

async function recordOf(page: Page): Promise<string[]> {
  await until(page, () => posted.at(-1) === 'end')
  return page.evaluate(() => posted.slice(1))
}
