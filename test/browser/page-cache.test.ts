import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { startPublishing } from './support/publisher.ts'
import { each, hasty, openReaders, recordsOf, until, visit } from './support/readers.ts'
import { plainChromium } from './support/shared-chromium.ts'
import { openStage } from './support/stage.ts'

const chromium = plainChromium()

test('pages that the browser keeps for the back button hold no connection: the tab goes on without waiting', async (context) => {
  const { page, proxy } = await openStage(context, chromium.context)
  const url = `http://127.0.0.1:${proxy.port}/`
  for (let left = 1; left <= 6; left++) {
    await openReaders(page)
    await visit(page, `${url}?page=${left}`)
  }
  expect(await page.evaluate(() => Object.keys(readers))).toEqual([])
})

test('a page that comes back from the page cache is live at once on every transport, with every event and none twice', async (context) => {
  const { page, proxy, site } = await openStage(context, chromium.context)
  await openReaders(page, { ...hasty, retryMs: 5000, maxRetryMs: 5000 })
  await watchReturn(page)
  const publisher = startPublishing(site)
  for (let time = 1; time <= 3; time++) {
    await publisher.more(30)
    await visit(page, `http://127.0.0.1:${proxy.port}/?other`)
    await expect.poll(() => site.hub.readers('numbers')).toBe(0)
    await publisher.more(30)
    // No page is loaded, so that there is no `load` to wait for.
    await page.goBack({ waitUntil: 'commit' })
    await until(page, (time) => returns.filter(({ liveAfterMs }) => liveAfterMs.length === 3).length === time, time)
  }
  const published = await publisher.finish()
  expect(await recordsOf(page)).toEqual(each(published))
  const took = (await page.evaluate(() => returns.flatMap(({ liveAfterMs }) => liveAfterMs))).sort((a, b) => a - b)
  console.log(`back from the cache, live after ${took.map(Math.round).join(', ')} ms`)
  // The median, as a busy machine takes its time for one or another. A wait would be five seconds.
  expect(took[Math.floor(took.length / 2)]).toBeLessThanOrEqual(300)
})

declare global {
  var returns: { liveAfterMs: number[] }[]
}

/** Notes how long after the page was shown again each reader has a connection that has proved itself. */
async function watchReturn(page: Page): Promise<void> {
  await page.evaluate(() => {
    globalThis.returns = []
    addEventListener('pageshow', ({ persisted }) => {
      if (!persisted) return
      const shownAt = performance.now()
      const liveAfterMs: number[] = []
      returns.push({ liveAfterMs })
      for (const { stream } of Object.values(readers)) {
        const off = stream.onState(({ state, stale }) => {
          if (state !== 'connected' || stale) return
          liveAfterMs.push(performance.now() - shownAt)
          queueMicrotask(() => off())
        })
      }
    })
  })
}
