import type { IncomingMessage } from 'node:http'
import type { ConnectOptions } from '@rejoin/client'
import type { Page } from 'playwright-core'
import { expect, type TestContext, test } from 'vitest'
import { openTab } from './support/open-tab.ts'
import { areConnected, areIn, until, visit } from './support/readers.ts'
import { plainChromium } from './support/shared-chromium.ts'
import { openStage, type Stage } from './support/stage.ts'

// Anna may read the numbers, Ben may not. Both have the page open in a tab of the same browser.

const chromium = plainChromium()

type Credential = 'a token' | 'a token function' | 'headers' | 'a headers function' | 'a fetch' | 'a cookie'

const credentials: Credential[] = [
  'a token',
  'a token function',
  'headers',
  'a headers function',
  'a fetch',
  'a cookie',
]

test.for(credentials)(
  'a tab of another user, known by %s, never gets an event of the tab beside it',
  async (kind, context) => {
    const stage = await openUsers(context)
    const anna = stage.page
    const ben = await anotherTab(context, stage)
    await readAs(anna, 'anna', kind, { shareAcrossTabs: true })
    await areConnected(anna)
    await readAs(ben, 'ben', kind, { shareAcrossTabs: true })
    await stage.site.hub.publish('numbers', { text: 'for anna alone' })
    await until(anna, () => gotOf('tab').includes('for anna alone'))
    await areIn(ben, 'closed')
    expect(await ben.evaluate(() => [gotOf('tab'), readers.tab!.stream.state.closeReason])).toEqual([[], 'http-403'])
  },
)

test.for(credentials)('tabs with an identity, known by %s, share with their own user alone', async (kind, context) => {
  const stage = await openUsers(context)
  const anna = stage.page
  const second = await anotherTab(context, stage)
  const ben = await anotherTab(context, stage)
  for (const tab of [anna, second]) {
    await readAs(tab, 'anna', kind, { shareAcrossTabs: true, identity: 'anna' })
    await areConnected(tab)
  }
  expect(stage.site.hub.readers('numbers')).toBe(1)
  await readAs(ben, 'ben', kind, { shareAcrossTabs: true, identity: 'ben' })
  await stage.site.hub.publish('numbers', { text: 'for anna alone' })
  for (const tab of [anna, second]) await until(tab, () => gotOf('tab').includes('for anna alone'))
  await areIn(ben, 'closed')
  expect(await ben.evaluate(() => gotOf('tab'))).toEqual([])
})

test('tabs whose requests carry no credentials share without an identity', async (context) => {
  const stage = await openStage(context, chromium.context)
  const second = await anotherTab(context, stage)
  for (const tab of [stage.page, second]) {
    await tab.evaluate(() => read('tab', { shareAcrossTabs: true, credentials: 'omit' }))
    await areConnected(tab)
  }
  expect(stage.site.hub.readers('numbers')).toBe(1)
})

function openUsers(context: TestContext): Promise<Stage> {
  return openStage(context, chromium.context, {
    authorize: (request) => {
      const user = userOf(request)
      return user ? { subject: user, subscribe: user === 'anna' ? ['*'] : ['others'] } : null
    },
  })
}

function userOf({ headers }: IncomingMessage): string | undefined {
  return /\b(anna|ben)\b/.exec(`${headers.authorization} ${headers['x-user']} ${headers.cookie}`)?.[1]
}

async function anotherTab(context: TestContext, { proxy }: Stage): Promise<Page> {
  const tab = await openTab(context, chromium.context)
  await visit(tab, `http://127.0.0.1:${proxy.port}/`)
  return tab
}

/** A cookie belongs to the whole browser: the tab that is open already stays with its user until it reconnects. */
async function readAs(tab: Page, user: string, kind: Credential, options: ConnectOptions): Promise<void> {
  await tab.evaluate(
    ([user, kind, options]) => {
      // biome-ignore lint/suspicious/noDocumentCookie: the test signs in as a page of the eldest kind does.
      document.cookie = kind === 'a cookie' ? `user=${user}` : 'user=; max-age=0'
      const given: Record<Credential, ConnectOptions> = {
        'a token': { token: user },
        'a token function': { token: async () => user },
        headers: { headers: { 'X-User': user } },
        'a headers function': { headers: async () => ({ 'X-User': user }) },
        'a fetch': { fetch: (input, init) => fetch(input, { ...init, headers: { 'X-User': user } }) },
        'a cookie': {},
      }
      read('tab', { ...options, ...given[kind] })
    },
    [user, kind, options] as const,
  )
}
