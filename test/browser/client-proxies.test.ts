import type { StreamState } from '@rejoin/client'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { openGzipProxy } from './support/gzip-proxy.ts'
import { type Holds, openHoldingProxy } from './support/holding-proxy.ts'
import { startPublishing } from './support/publisher.ts'
import { areConnected, areIn, each, hasty, haveCursor, haveLost, recordsOf, visit } from './support/readers.ts'
import { sharedChromium } from './support/shared-chromium.ts'
import { openSite } from './support/site.ts'
import { cutInTurn, openBusyStage, openStage } from './support/stage.ts'

const chromium = sharedChromium()

describe.concurrent.each(['everything', 'the body'] satisfies Holds[])(
  'behind a proxy that holds back %s of a stream',
  (holds) => {
    test.concurrent.for(['fetch', 'event-source'] as const)(
      '%s gives way to long-poll, with the same events',
      async (first, { onTestFinished }) => {
        const site = await openSite()
        onTestFinished(() => site.close())
        const proxy = await openHoldingProxy(site, holds)
        onTestFinished(() => proxy.close())
        const page = await chromium.tabs.newPage()
        onTestFinished(() => page.close())
        await visit(page, `http://127.0.0.1:${proxy.port}`)
        await page.evaluate(
          (first) => read('reader', { clock, maxRetryMs: 1000, transports: [first, 'long-poll'] }),
          first,
        )
        await haveCursor(page)
        const publisher = startPublishing(site)
        await publisher.more(40)

        // A stream that is cut in its first second would itself speak against the transport.
        await page.evaluate(() => clock.advance(2_000))

        proxy.hold()
        await areIn(page, 'backoff')
        const heldAt = await page.evaluate(() => clock.now())
        for (let streams = 1; streams <= 2; streams += 1) {
          await passTimeUntil(page, 'connecting')
          // Time stands still meanwhile, so that it is not for want of time that nothing arrives.
          await proxy.hasHeld(streams)
          // Also with the head alone: without a byte of the body it is not connected.
          await areIn(page, 'connecting')
          await passTimeUntil(page, 'backoff')
        }
        await passTimeUntil(page, 'connecting')
        // Twice the silence that the hub's heartbeat of a second allows, and the waits before, between and after.
        expect(await page.evaluate((heldAt) => clock.now() - heldAt, heldAt)).toBeLessThan(20_000)
        expect(await page.evaluate(() => readers.reader!.stream.state.transport)).toBe('long-poll')
        await areConnected(page)
        await publisher.more(40)
        const published = await publisher.finish()
        expect(await recordsOf(page)).toEqual({ reader: published })
      },
    )
  },
)

test.concurrent('behind a proxy that strips the cursor’s header, the cursor travels in the query', async (context) => {
  const { site, proxy, page } = await openStage(context, chromium.tabs, {
    intercept({ headers }) {
      headers['last-event-id'] = undefined
      return false
    },
  })
  await page.evaluate((hasty) => read('reader', hasty), hasty)
  await haveCursor(page)
  const publisher = startPublishing(site)
  for (let cut = 0; cut < 2; cut += 1) {
    await publisher.more(40)
    const asked = site.requests.length
    proxy.cutAll('reset')
    // The first time the hub's answer shows that it saw no cursor, and the client asks again.
    await haveLost(page, cut + 1)
    await areConnected(page)
    const carried = site.requests.slice(asked).map(({ url }) => url.includes('lastEventId='))
    expect(carried).toEqual(cut === 0 ? [false, true] : [true])
  }
  const published = await publisher.finish()
  expect(await recordsOf(page)).toEqual({ reader: published })
})

test.concurrent('behind a proxy that compresses everything, cuts cost no reader an event on any transport', async (context) => {
  let streams = () => 0
  const stage = await openBusyStage(context, chromium.tabs, {
    async behind(site) {
      const gzip = await openGzipProxy(site)
      streams = () => gzip.streams()
      return gzip
    },
  })
  await cutInTurn(stage, ['reset', 'fin', 'reset'])
  const published = await stage.publisher.finish()
  expect(await recordsOf(stage.page)).toEqual(each(published))
  expect(streams()).toBeGreaterThanOrEqual(8)
})

/** Lets the page's time pass until its reader is in a state, at most for five minutes of it. */
async function passTimeUntil(page: Page, state: StreamState['state']): Promise<void> {
  const reached = await page.evaluate((state) => {
    const { stream } = readers.reader!
    for (let passed = 0; passed < 300_000 && stream.state.state !== state; passed += 100) clock.advance(100)
    return stream.state.state
  }, state)
  expect(reached).toBe(state)
}
