import type { IncomingMessage } from 'node:http'
import { expect, type TestContext, test } from 'vitest'
import { startPublishing } from './support/publisher.ts'
import { areConnected, haveCursor, recordsOf, until } from './support/readers.ts'
import { sharedChromium } from './support/shared-chromium.ts'
import { openStage, type Stage } from './support/stage.ts'

const chromium = sharedChromium()

declare global {
  /** The token that the page holds, and the one that it would get. */
  var tokens: { held: string; next: string }
}

test.concurrent('a token whose time is up, or that is rejected, is renewed once, and no event is lost', async (context) => {
  const { site, page, proxy, accept } = await openGuardedStage(context)
  await openTokenReaders(page)
  const publisher = startPublishing(site)
  await publisher.more(40)

  // While it is connected: the hub ends the stream, and says why.
  await page.evaluate(() => Object.assign(tokens, { next: 'second' }))
  accept('second')
  site.hub.revoke('somebody')
  await until(page, () => tokens.held === 'second')
  await areConnected(page)
  await publisher.more(40)

  // While it is away: the hub answers 401.
  await page.evaluate(() => Object.assign(tokens, { next: 'third' }))
  accept('third')
  proxy.cutAll('reset')
  await until(page, () => tokens.held === 'third')
  await areConnected(page)

  const published = await publisher.finish()
  expect(await recordsOf(page)).toEqual({ fetch: published, 'long-poll': published })
})

test.concurrent('when nobody has a better token, the page is told to ask its user, and goes on from its cursor', async (context) => {
  const { site, page, proxy, accept } = await openGuardedStage(context)
  await openTokenReaders(page)
  const publisher = startPublishing(site)
  await publisher.more(40)
  accept('second')
  proxy.cutAll('reset')
  await until(page, () => Object.values(readers).every(({ stream }) => stream.state.closeReason === 'unauthorized'))
  await publisher.more(40)

  // The user has signed in again.
  await page.evaluate(() => {
    for (const [name, { stream }] of Object.entries(readers)) {
      read(name, { token: 'second', from: stream.cursor, transports: [name as 'fetch'] })
    }
  })
  const published = await publisher.finish()
  expect(await recordsOf(page)).toEqual({ fetch: published, 'long-poll': published })
})

test.concurrent('through EventSource, which shows no 401, a reader keeps trying and is back once there is a cookie', async (context) => {
  const { site, page, proxy, accept } = await openGuardedStage(context)
  await page.context().addCookies([{ name: 'token', value: 'first', url: page.url() }])
  await page.evaluate(() => read('event-source', { transports: ['event-source'], retryMs: 100, maxRetryMs: 1000 }))
  await haveCursor(page)
  const publisher = startPublishing(site)
  await publisher.more(40)
  accept('second')
  proxy.cutAll('reset')
  await until(page, () => (readers['event-source']?.stream.state.attempt ?? 0) >= 3)
  await page.context().addCookies([{ name: 'token', value: 'second', url: page.url() }])
  const published = await publisher.finish()
  expect(await recordsOf(page)).toEqual({ 'event-source': published })
})

test.concurrent('after EventSource was rejected, fetch sees the 401, and reconnect() goes on from the cursor', async (context) => {
  const { site, page, proxy, accept } = await openGuardedStage(context)
  await page.context().addCookies([{ name: 'token', value: 'first', url: page.url() }])
  await page.evaluate(() =>
    read('event-source', { transports: ['event-source', 'fetch'], retryMs: 100, maxRetryMs: 1000 }),
  )
  await haveCursor(page)
  const publisher = startPublishing(site)
  await publisher.more(40)
  accept('second')
  proxy.cutAll('reset')
  await until(page, () => readers['event-source']?.stream.state.closeReason === 'unauthorized')
  await publisher.more(40)

  // The user has signed in again.
  await page.context().addCookies([{ name: 'token', value: 'second', url: page.url() }])
  await page.evaluate(() => readers['event-source']?.stream.reconnect())
  const published = await publisher.finish()
  expect(await recordsOf(page)).toEqual({ 'event-source': published })
})

/** A site that knows one token, `first` at first, and a page that holds it. */
async function openGuardedStage(context: TestContext): Promise<Stage & { accept(token: string): void }> {
  let accepted = 'first'
  const tabs = await chromium.browser.newContext()
  context.onTestFinished(() => tabs.close())
  const stage = await openStage(context, tabs, {
    authorize: (request) => (tokenOf(request) === accepted ? { subject: 'somebody', subscribe: ['*'] } : null),
  })
  await stage.page.evaluate(() => {
    globalThis.tokens = { held: 'first', next: 'first' }
  })
  return {
    ...stage,
    accept(next) {
      accepted = next
    },
  }
}

function tokenOf({ headers }: IncomingMessage): string | undefined {
  const [, bearer] = /^Bearer (.+)$/.exec(headers.authorization ?? '') ?? []
  const [, cookie] = /\btoken=(\w+)/.exec(headers.cookie ?? '') ?? []
  return bearer ?? cookie
}

/** Readers that hold on to their token until they are told that it will not do. */
async function openTokenReaders(page: Stage['page']): Promise<void> {
  await page.evaluate(() => {
    const token = ({ refresh }: { refresh: boolean }) => {
      if (refresh) tokens.held = tokens.next
      return tokens.held
    }
    for (const name of ['fetch', 'long-poll'] as const) {
      read(name, { token, transports: [name], retryMs: 100, maxRetryMs: 1000 })
    }
  })
  await haveCursor(page)
}
