import type { Environment } from '@rejoin/hub'
import { createVirtualEnvironment } from '@rejoin/hub/testing'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { areConnected, areIn, each, haveCursor, transports, until } from './support/readers.ts'
import { sharedChromium } from './support/shared-chromium.ts'
import { openStage } from './support/stage.ts'

const chromium = sharedChromium()

declare global {
  /** How often something arrived for a reader. */
  var signs: Record<string, number>
}

test('ten quiet minutes do not look like a dead connection, and a dead connection does', async (context) => {
  const hubTime = createVirtualEnvironment()
  // Its own turns are the real ones, as bytes come and go in real time.
  const environment: Environment = { ...hubTime, endOfTurn: setImmediate }
  const { page, site } = await openStage(context, chromium.tabs, { environment, heartbeatMs: 25_000 })
  await countSigns(page)
  await page.evaluate((names) => {
    for (const name of names) read(name, { clock, transports: [name] })
  }, transports)
  await haveCursor(page)
  await areConnected(page)

  for (let minutes = 0; minutes < 10; minutes += 25 / 60) {
    const before = await page.evaluate(() => ({ ...signs }))
    // The heartbeat that is due answers only a poll that is already there.
    const polls = () => site.requests.filter(({ url }) => url.includes('waitMs=')).length
    await expect.poll(polls).toBeGreaterThan(before['long-poll'] ?? 0)
    await page.evaluate(() => clock.advance(25_000))
    await hubTime.advance(25_000)
    await until(page, (before) => Object.keys(before).every((name) => signs[name]! > before[name]!), before)
  }
  expect(await statesOf(page)).toEqual(each(['connecting', 'connected']))

  // One heartbeat is overdue.
  await page.evaluate(() => clock.advance(30_000))
  expect(await statesOf(page)).toEqual(each(['connecting', 'connected', 'connected, stale']))
  // So are two.
  await page.evaluate(() => clock.advance(25_000))
  expect(await statesOf(page)).toMatchObject(each(['connecting', 'connected', 'connected, stale', 'backoff, stale']))
})

test('while it waits, a page can show for how long, and whether what it shows is old', async (context) => {
  const { page, proxy } = await openStage(context, chromium.tabs)
  await page.evaluate(() => read('fetch', { clock, retryMs: 10_000 }))
  await haveCursor(page)
  proxy.reject()
  proxy.cutAll('reset')
  await areIn(page, 'backoff')
  const waitMs = await page.evaluate(() => readers.fetch!.stream.state.nextRetryAt! - clock.now())
  expect(waitMs).toBeGreaterThanOrEqual(10_000)
  proxy.accept()
  const states = await page.evaluate((waitMs) => {
    clock.advance(waitMs - 1)
    const waiting = readers.fetch!.stream.state
    clock.advance(1)
    return [waiting, readers.fetch!.stream.state]
  }, waitMs)
  expect(states).toMatchObject([
    { state: 'backoff', stale: true, attempt: 1 },
    { state: 'connecting', stale: true, attempt: 1, nextRetryAt: null },
  ])
  await areConnected(page)
})

/** Counts what arrives for each reader: chunks of a body, which may hold only a comment, and heartbeats as events. */
async function countSigns(page: Page): Promise<void> {
  await page.evaluate(() => {
    globalThis.signs = {}
    const count = (url: string | URL | Request) => {
      const name = new URL(String(url)).searchParams.get('reader') ?? ''
      signs[name] = (signs[name] ?? 0) + 1
    }
    const { fetch, EventSource } = globalThis
    globalThis.fetch = async (url, init) => {
      const response = await fetch(url, init)
      const counted = new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          controller.enqueue(chunk)
          count(url as URL)
        },
      })
      return new Response(response.body?.pipeThrough(counted), response)
    }
    globalThis.EventSource = class extends EventSource {
      constructor(url: string | URL, init?: EventSourceInit) {
        super(url, init)
        for (const type of ['hello', 'heartbeat']) this.addEventListener(type, () => count(url))
      }
    }
  })
}

/** What each reader has shown of itself, in order. */
function statesOf(page: Page): Promise<Record<string, string[]>> {
  return page.evaluate(() => {
    const words = Object.entries(readers).map(([name, { states }]) => [
      name,
      states
        .map(({ state, stale }) => (stale ? `${state}, stale` : state))
        .filter((word, index, all) => word !== all[index - 1]),
    ])
    return Object.fromEntries(words)
  })
}
