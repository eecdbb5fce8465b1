import type { ConnectOptions } from '@rejoin/client'
import type { Page } from 'playwright-core'
import { beforeAll, expect, type TestContext, test } from 'vitest'
import { type BundledPage, bundlePage } from './support/bundled-page.ts'
import { startPublishing } from './support/publisher.ts'
import { until } from './support/readers.ts'
import { sharedChromium } from './support/shared-chromium.ts'
import { openStage, type Stage } from './support/stage.ts'

// Anna may read the numbers, Ben may not. They use the same page, one after the other. Tabs are in tabs-users.test.ts.

declare global {
  var bindings: Record<string, (...given: Given) => Mounted>
  var users: Record<string, { state: string; closeReason: string | null; shown: number; got: unknown[] }>
  var mounted: Mounted | undefined
  var fading: Mounted | undefined
}

type Given = [
  options: ConnectOptions,
  show: (view: { state: string; closeReason: string | null }, events: readonly { data: unknown }[]) => void,
  handle: (event: { data: unknown }) => unknown,
]

/** Unmounts. `update` gives other properties to a component that stays. */
type Mounted = (() => void) & { update?(...given: Given): void }

const chromium = sharedChromium()
let bundle: BundledPage

beforeAll(async () => {
  bundle = await bundlePage('components')
}, 60_000)

const names = ['React', 'Vue', 'Vue in KeepAlive', 'Redux', 'Svelte', 'element'] as const
const kinds = [
  'a token',
  'a token function',
  'headers',
  'a headers function',
  'a fetch',
  'a cookie',
  'a cookie and a header that all users send',
  'a token and a headers function',
  'an identity',
] as const
/** Kinds that show who reads each time that they are asked. */
const jwts = ['a token function that gives JWTs', 'a headers function that gives JWTs'] as const
type Kind = (typeof kinds | typeof jwts)[number]

/** Kinds that do not show who reads. */
const hidden = ['a token function', 'a headers function', 'a fetch', 'a cookie'] as const

/** Kinds that show, without a new component, that the user is another one. */
const visible = ['a token', 'headers', 'a token and a headers function', 'an identity'] as const

const cases = [
  ...names.flatMap((name) => kinds.map((kind) => [name, kind] as const)),
  ...[...hidden, 'an identity' as const].map((kind) => ['a new Redux store', kind] as const),
]

test.concurrent.for(cases)(
  '%s, %s: the next user of a page gets nothing of the one before, at once, after 300 ms and after 1.5 s',
  async ([name, kind], context) => {
    const { page, site } = await openUsers(context)
    const publisher = startPublishing(site, 50)
    for (const gapMs of [0, 300, 1500]) {
      await mountAs(page, name, kind, 'anna')
      await until(page, () => users.anna!.state === 'connected')
      if (name !== 'element') await until(page, () => users.anna!.got.length > 5)
      await mountAs(page, name, kind, 'ben', gapMs)
      await until(page, () => users.ben!.closeReason === 'http-403')
      await publisher.more(10)
      expect(await page.evaluate(() => users.ben)).toEqual({
        state: 'closed',
        closeReason: 'http-403',
        shown: 0,
        got: [],
      })
      await context.expect.poll(() => site.hub.readers('numbers')).toBe(0)
    }
    await publisher.finish()
  },
)

test.concurrent.for((['React', 'Vue'] as const).flatMap((name) => visible.map((kind) => [name, kind] as const)))(
  '%s, %s: a component that stays shows nothing of the user before',
  async ([name, kind], context) => {
    const { page, site } = await openUsers(context)
    const publisher = startPublishing(site, 50)
    await mountAs(page, name, kind, 'anna')
    await until(page, () => users.anna!.got.length > 5)
    await mountAs(page, name, kind, 'ben', 0, true)
    await until(page, () => users.ben!.closeReason === 'http-403')
    await publisher.more(10)
    expect(await page.evaluate(() => users.ben)).toEqual({
      state: 'closed',
      closeReason: 'http-403',
      shown: 0,
      got: [],
    })
    await context.expect.poll(() => site.hub.readers('numbers')).toBe(0)
    await publisher.finish()
  },
)

test.concurrent.for(
  (['React', 'Vue'] as const).flatMap((name) => [...hidden, ...jwts].map((kind) => [name, kind] as const)),
)(
  '%s, %s: a page that fades in while that of the user before fades out keeps neither the connection nor the events of that user',
  async ([name, kind], context) => {
    const { page, site } = await openUsers(context)
    const publisher = startPublishing(site, 50)
    await mountAs(page, name, kind, 'anna')
    await until(page, () => users.anna!.got.length > 5)
    await page.evaluate(() => {
      globalThis.fading = globalThis.mounted
      globalThis.mounted = undefined
    })
    await mountAs(page, name, kind, 'ben')
    await publisher.more(10)
    await page.evaluate(() => fading!())
    await until(page, () => users.ben!.closeReason === 'http-403')
    const before = await page.evaluate(() => users.ben!.got.length)
    await publisher.more(10)
    expect(await page.evaluate(() => [users.ben!.got.length, users.ben!.shown])).toEqual([before, 0])
    await context.expect.poll(() => site.hub.readers('numbers')).toBe(0)
    await publisher.finish()
  },
)

test.concurrent.for(['React', 'Vue'] as const)(
  '%s: a component whose token function is taken away has signed out',
  async (name, context) => {
    const { page, site } = await openUsers(context)
    const publisher = startPublishing(site, 50)
    await mountAs(page, name, 'a token function', 'anna')
    await until(page, () => users.anna!.got.length > 5)
    await mountAs(page, name, 'a cookie', 'ben', 0, true)
    await until(page, () => users.ben!.closeReason === 'http-403')
    await publisher.more(10)
    expect(await page.evaluate(() => users.ben)).toEqual({
      state: 'closed',
      closeReason: 'http-403',
      shown: 0,
      got: [],
    })
    await publisher.finish()
  },
)

test.concurrent.for((['React', 'Vue'] as const).flatMap((name) => jwts.map((kind) => [name, kind] as const)))(
  '%s, %s: a component that stays begins anew once its function gives the JWT of another user',
  async ([name, kind], context) => {
    const cursors: unknown[] = []
    const { page, site, proxy } = await openUsers(context, cursors)
    const publisher = startPublishing(site, 50)
    await mountAs(page, name, kind, 'anna')
    await until(page, () => users.anna!.got.length > 5)
    proxy.cutAll('reset')
    await publisher.more(10)
    await until(page, () => users.anna!.state === 'connected' && users.anna!.shown > 20)
    await mountAs(page, name, kind, 'ben', 0, true)
    proxy.cutAll('reset')
    await until(page, () => users.ben!.closeReason === 'http-403')
    const before = await page.evaluate(() => users.ben!.got.length)
    await publisher.more(10)
    expect(await page.evaluate(() => [users.ben!.got.length, users.ben!.shown])).toEqual([before, 0])
    expect(cursors).toEqual([undefined])
    await publisher.finish()
  },
)

/** @param cursors - gets the cursors with which Ben asks */
async function openUsers(context: TestContext, cursors: unknown[] = []): Promise<Stage> {
  return openStage(
    context,
    chromium.tabs,
    {
      intercept: (request, response) => bundle.serve(request, response),
      authorize({ headers }) {
        // All sites of a browser on 127.0.0.1 share their cookies, so each has a name of its own.
        const cookie = `user${headers.host?.split(':')[1]}=anna`
        const sent = [headers.authorization, headers['x-user']]
        const jwt = atob(/Bearer x\.(.*)\.y/.exec(headers.authorization ?? '')?.[1] ?? '')
        const isJwt = jwt.includes('anna')
        const isAnna =
          isJwt || sent.includes('Bearer anna') || sent.includes('anna') || headers.cookie?.includes(cookie)
        if (!isAnna) cursors.push(headers['last-event-id'])
        return { subject: isAnna ? 'anna' : 'ben', subscribe: isAnna ? ['*'] : ['others'] }
      },
    },
    '/components',
  )
}

/**
 * Signs the user of the page out, and another in.
 *
 * @param stays - the component stays, and gets the options of the other user
 */
async function mountAs(page: Page, name: string, kind: Kind, user: string, gapMs = 0, stays = false): Promise<void> {
  await page.evaluate(
    async ([name, kind, user, gapMs, stays]) => {
      if (!stays) globalThis.mounted?.()
      const hasCookie = kind.startsWith('a cookie') || kind === 'an identity'
      // biome-ignore lint/suspicious/noDocumentCookie: the other way is not there in a page without HTTPS.
      document.cookie = `user${location.port}=${hasCookie ? user : 'nobody'}`
      if (gapMs) await new Promise((resolve) => setTimeout(resolve, gapMs))
      // Each token has another text.
      const jwt = () => `Bearer x.${btoa(JSON.stringify({ sub: user, exp: Math.random() }))}.y`
      const options: Record<Kind, ConnectOptions> = {
        'a token': { token: user },
        'a token function': { token: () => user },
        headers: { headers: { 'X-User': user } },
        'a headers function': { headers: () => ({ 'X-User': user }) },
        'a fetch': { fetch: (input, init) => fetch(input, { ...init, headers: { 'X-User': user } }) },
        'a cookie': {},
        'a cookie and a header that all users send': { headers: { 'X-App': '1' } },
        'a token and a headers function': { token: user, headers: () => ({ 'X-App': '1' }) },
        'an identity': { identity: user },
        'a token function that gives JWTs': { token: async () => jwt().replace('Bearer ', '') },
        'a headers function that gives JWTs': { headers: () => ({ Authorization: jwt() }) },
      }
      const it = { state: '', closeReason: null as string | null, shown: 0, got: [] as unknown[] }
      globalThis.users = { ...globalThis.users, [user]: it }
      const given: Given = [
        options[kind],
        ({ state, closeReason }, events) => {
          Object.assign(it, { state, closeReason, shown: events.length })
          it.got.push(...events.map(({ data }) => data))
        },
        ({ data }) => void it.got.push(data),
      ]
      if (stays) globalThis.mounted!.update!(...given)
      else globalThis.mounted = bindings[name]!(...given)
    },
    [name, kind, user, gapMs, stays] as const,
  )
}
