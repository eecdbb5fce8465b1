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
  var bindings: Record<
    string,
    (
      options: ConnectOptions,
      show: (view: { state: string; closeReason: string | null }, events: readonly { data: unknown }[]) => void,
      handle: (event: { data: unknown }) => unknown,
    ) => () => void
  >
  var users: Record<string, { state: string; closeReason: string | null; got: unknown[] }>
  var unmount: () => void
}

const chromium = sharedChromium()
let bundle: BundledPage

beforeAll(async () => {
  bundle = await bundlePage('components')
}, 60_000)

const names = ['React', 'Vue', 'Redux', 'Svelte', 'element'] as const
const kinds = ['a token', 'a token function', 'a cookie', 'an identity'] as const
type Kind = (typeof kinds)[number]

test.concurrent.for(names.flatMap((name) => kinds.map((kind) => [name, kind] as const)))(
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
      expect(await page.evaluate(() => users.ben)).toEqual({ state: 'closed', closeReason: 'http-403', got: [] })
      await context.expect.poll(() => site.hub.readers('numbers')).toBe(0)
    }
    await publisher.finish()
  },
)

async function openUsers(context: TestContext): Promise<Stage> {
  return openStage(
    context,
    chromium.tabs,
    {
      intercept: (request, response) => bundle.serve(request, response),
      authorize({ headers }) {
        // All sites of a browser on 127.0.0.1 share their cookies, so each has a name of its own.
        const cookie = `user${headers.host?.split(':')[1]}=anna`
        const isAnna = headers.authorization === 'Bearer anna' || headers.cookie?.includes(cookie)
        return { subject: isAnna ? 'anna' : 'ben', subscribe: isAnna ? ['*'] : ['others'] }
      },
    },
    '/components',
  )
}

/** Signs the user of the page out, and another in. */
async function mountAs(page: Page, name: string, kind: Kind, user: string, gapMs = 0): Promise<void> {
  await page.evaluate(
    async ([name, kind, user, gapMs]) => {
      globalThis.unmount?.()
      const hasToken = kind.includes('token')
      // biome-ignore lint/suspicious/noDocumentCookie: the other way is not there in a page without HTTPS.
      document.cookie = `user${location.port}=${hasToken ? 'nobody' : user}`
      if (gapMs) await new Promise((resolve) => setTimeout(resolve, gapMs))
      const given: Record<Kind, ConnectOptions> = {
        'a token': { token: user },
        'a token function': { token: () => user },
        'a cookie': {},
        'an identity': { identity: user },
      }
      const it = { state: '', closeReason: null as string | null, got: [] as unknown[] }
      globalThis.users = { ...globalThis.users, [user]: it }
      globalThis.unmount = bindings[name]!(
        given[kind],
        ({ state, closeReason }, events) => {
          Object.assign(it, { state, closeReason })
          it.got.push(...events.map(({ data }) => data))
        },
        ({ data }) => void it.got.push(data),
      )
    },
    [name, kind, user, gapMs] as const,
  )
}
