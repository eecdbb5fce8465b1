import type { LogSource } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import type { Page } from 'playwright-core'
import { type ServeOptions, type Serving, serve } from 'rejoin'
import { describe, expect, type TestContext, test } from 'vitest'
import {
  desktop,
  expectNoSidewaysScroll,
  foreignElements,
  hostileTexts,
  layoutShift,
  openPage,
  type PageOptions,
  phone,
  press,
  seriousBarriers,
  weightOf,
} from './support/page-check.ts'
import { startServer } from './support/server-process.ts'
import { sharedChromium } from './support/shared-chromium.ts'

const token = 'an-admin-token-of-the-tests'
const chromium = sharedChromium()

test('a wrong token opens nothing, the right one does, and is kept for as long as the tab', async (context) => {
  const server = await startHub(context)
  const page = await openPage(context, chromium.tabs, `${server.url}/dashboard`, { mayFail: /admin/ })
  await signIn(page, 'a-token-that-is-wrong')
  await page.getByText('That is not the token').waitFor()
  await signIn(page, token)
  await figure(page, 'Connections').waitFor()
  await page.reload()
  await figure(page, 'Connections').waitFor()
  await press(page, 'Sign out')
  await page.getByLabel('Admin token').waitFor()
})

test('the dashboard shows readers, publishes and the outcome of returns, as they happen', async (context) => {
  const server = await startHub(context)
  const page = await openDashboard(context, server)
  await context.expect.poll(() => figure(page, 'Connections').textContent(), patience).toBe('0')
  const first = await fetch(`${server.url}/events/orders/42`)
  await context.expect.poll(() => figure(page, 'Connections').textContent(), patience).toBe('1')
  await first.body?.cancel()
  const { id } = await server.hub.publish('orders/42', { text: 'one' })
  await server.hub.publish('orders/42', { text: 'two' })
  const second = await fetch(`${server.url}/events/orders/42`, { headers: { 'Last-Event-ID': id } })
  await page.locator('[data-outcome="replayed"]').waitFor()
  await page.getByText('disconnected').first().waitFor()
  expect(await figure(page, 'Gap rate').textContent()).toBe('0.0 %')
  await second.body?.cancel()
})

test('how long a client may be away goes by the window of the channel’s own pattern', async (context) => {
  const log = memoryLog({ windows: { 'prices/*': { maxAgeMs: 60_000 } } })
  const other = await startHub(context, { admin: { port: 0 }, log })
  for (const channel of ['orders/42', 'prices/eur']) await other.hub.publish(channel, { text: 'one' })
  const page = await openPage(context, chromium.tabs, other.adminUrl ?? '', { mayFail: /./ })
  await page.getByRole('row', { name: /^prices\/eur 1 .* 60 s Invalidate/ }).waitFor()
  await page.getByRole('row', { name: /^orders\/42 1 .* 5 min Invalidate/ }).waitFor()
})

test('a rate of only a few returns says how many they are', async (context) => {
  const server = await startHub(context)
  const page = await openDashboard(context, server)
  for (const id of ['nonsense', 'nonsense', 'nonsense']) expect(await toldOf(server, id)).toContain('sync-required')
  await context.expect.poll(() => figure(page, 'Gap rate').textContent(), patience).toBe('100.0 %')
  await page.getByText('3 of 3 returns').waitFor()
})

test('it shows how much of its budget the log has used', async (context) => {
  const other = await startHub(context, { admin: { port: 0 }, log: memoryLog({ maxBytes: 1000 }) })
  await other.hub.publish('orders/42', { text: 'x'.repeat(843) })
  const page = await openPage(context, chromium.tabs, other.adminUrl ?? '', { mayFail: /./ })
  await context.expect.poll(() => figure(page, 'Log').textContent(), patience).toBe('85.0 %')
  await page.getByText('850 B of 1,000 B').waitFor()
})

test('it shows who was rejected and why', async (context) => {
  const server = await startHub(context)
  const page = await openDashboard(context, server)
  await fetch(`${server.url}/events/orders/42`, { headers: { origin: 'http://evil.example' } })
  await fetch(`${server.url}/publish/orders/42`, {
    method: 'POST',
    body: 'x',
    headers: { origin: 'http://evil.example' },
  })
  const row = page.locator('[data-rejected="origin"]')
  await context.expect
    .poll(() => row.getByRole('cell').allTextContents(), patience)
    .toEqual([expect.any(String), '2', '2'])
  const latest = page.getByLabel('Latest rejections')
  await latest.getByText('http://evil.example').first().waitFor()
  await latest.getByText('403 origin').first().waitFor()
  await latest.getByRole('cell', { name: 'publish', exact: true }).waitFor()
})

test('maintenance and a drain are shown with their switches on, also in a dashboard that is opened later', async (context) => {
  const server = await startHub(context)
  const page = await openDashboard(context, server)
  const maintenance = page.getByRole('button', { name: 'Maintenance', exact: true })
  expect(await maintenance.getAttribute('aria-pressed')).toBe('false')
  await press(page, 'Maintenance')
  await press(page.getByRole('dialog'), 'Begin maintenance')
  await page.getByText('maintenance: no readers are taken').waitFor()
  const other = await openDashboard(context, server)
  await other.getByText('maintenance: no readers are taken').waitFor()
  expect(await other.getByRole('button', { name: 'Maintenance', exact: true }).getAttribute('aria-pressed')).toBe(
    'true',
  )
  await press(other, 'Maintenance')
  await press(other.getByRole('dialog'), 'End maintenance')
  await page.getByText('maintenance: no readers are taken').waitFor({ state: 'hidden' })
  await press(page, 'Drain')
  await press(page.getByRole('dialog'), 'Drain')
  await page.getByText('draining: no readers are taken').waitFor()
  expect(await page.getByRole('button', { name: 'Drained' }).isDisabled()).toBe(true)
})

test('the dashboard does not say how long a client may be away from a channel that has ended', async (context) => {
  const server = await startHub(context)
  const page = await openDashboard(context, server)
  await server.hub.publish('answers/1', { text: 'one' })
  await server.hub.end('answers/1')
  await page.getByLabel('Channels that begin with').fill('answers/')
  await page.getByRole('row', { name: /^answers\/1 ended 1 .* – Invalidate/ }).waitFor()
})

test.concurrent.for([
  ['a narrow phone', { width: 390, height: 844 }],
  ['a desk', desktop],
] as const)('on %s every action is in sight, and no text is cut', async ([, viewport], context) => {
  const server = await startHub(context)
  const longName = 'orders/of-a-customer-with-a-long-name/and-another'
  for (let number = 10; number < 30; number += 1) await server.hub.publish(`${longName}/${number}`, { text: 'one' })
  const reader = await fetch(`${server.url}/events/orders/42?channel=prices/of-something-with-a-long-name`)
  const left = await fetch(`${server.url}/events/${longName}/10`)
  await left.body?.cancel()
  await fetch(`${server.url}/events/orders/42`, { headers: { origin: 'http://evil.example' } })
  const page = await openDashboard(context, server, { viewport })
  await page.locator('[data-rejected="origin"]').waitFor()
  await page.getByText('disconnected').first().waitFor()
  await expectNoSidewaysScroll(page)
  for (const [list, name] of [
    ['Channels and what they hold', 'Invalidate'],
    ['Who is connected', 'Disconnect'],
  ] as const) {
    const rows = page.getByLabel(list)
    const button = rows.getByRole('button', { name }).first()
    await button.scrollIntoViewIfNeeded()
    const box = await button.boundingBox()
    expect(box && box.x >= 0 && box.x + box.width <= viewport.width).toBe(true)
  }
  expect(await page.evaluate(cutTexts)).toEqual([])
  await reader.body?.cancel()
})

test.concurrent.for([
  ['a narrow phone', { width: 390, height: 844 }],
  ['a desk', desktop],
] as const)(
  'on %s an idle hub says so in whole sentences, and a question keeps off the edges',
  async ([, viewport], context) => {
    const page = await openDashboard(context, await startHub(context), { viewport })
    await page.getByText('There is no channel yet.').waitFor()
    await page.getByText('Nobody is connected.').waitFor()
    await page.getByText('Nobody was rejected since this page was opened.').waitFor()
    expect(await page.evaluate(cutTexts)).toEqual([])
    await page.getByLabel('Channels that begin with').fill('orders/')
    await page.getByText('No channel begins like that.').waitFor()
    await page.getByLabel('Connections of the channel').fill('orders/42')
    await page.getByText('Nobody reads this channel.').waitFor()
    await press(page, 'Drain')
    const { x = 0, width = 0 } = (await page.getByRole('dialog').boundingBox()) ?? {}
    expect(x).toBeGreaterThanOrEqual(12)
    expect(viewport.width - x - width).toBeGreaterThanOrEqual(12)
  },
)

test('a list that scrolls shows whole rows, and says how many more there are', async (context) => {
  const server = await startHub(context)
  for (let number = 10; number < 30; number += 1) await server.hub.publish(`orders/${number}`, { text: 'one' })
  const page = await openDashboard(context, server)
  const channels = page.getByLabel('Channels and what they hold')
  await page.getByText('↓ 10 more').waitFor()
  for (const top of [0, 100, 217]) expect(await channels.evaluate(cutRows, top)).toBe(0)
  await page.getByText('↓ 5 more').waitFor()
  expect(await channels.evaluate(cutRows, 10_000)).toBe(0)
  await page.getByText(/↓ \d+ more/).waitFor({ state: 'detached' })
})

test('the latest closes stay in sight while more streams end', async (context) => {
  const server = await startHub(context)
  const page = await openDashboard(context, server)
  const closes = page.getByLabel('Latest closes')
  const leave = async (channel: string) => (await fetch(`${server.url}/events/${channel}`)).body?.cancel()
  for (let number = 0; number < 10; number += 1) await leave(`left/${number}`)
  await closes.getByRole('row').nth(9).waitFor()
  for (const last of ['left/a', 'left/b', 'left/c']) {
    await leave(last)
    await closes.getByRole('row').first().getByText(last).waitFor()
    expect(await closes.evaluate((list) => list.scrollTop)).toBe(0)
  }
  await page.getByText('↓ 7 more').waitFor()
})

test('every list says of when it is', async (context) => {
  const page = await openDashboard(context, await startHub(context))
  for (const list of ['Channels', 'Connections']) {
    await page.getByRole('heading', { name: new RegExp(`^${list} at \\d\\d:\\d\\d:\\d\\d$`) }).waitFor()
  }
})

test('it shows what readers are told to wait, and that a log of its own has one node', async (context) => {
  const server = await startHub(context)
  const page = await openDashboard(context, server)
  // A hub whose event loop was late tells longer times, and two seconds again when it has recovered.
  await expect.poll(() => figure(page, 'Retry').textContent()).toBe('2 s')
  await page.getByText('Only this one').waitFor()
})

test('the other hubs on its log are shown, with what they tell of themselves', async (context) => {
  const name = '<img src=x onerror=alert(1)> 7'
  const told = { name, version: '1.2.3', startedAt: 0, connections: 4321, deliveriesPerSecond: 98_765, rssBytes: 1024 }
  const log: LogSource = {
    name: 'shared',
    open: async (environment) =>
      Object.assign(await memoryLog().open(environment), {
        meet: async (note: string) => [note, JSON.stringify(told)],
      }),
  }
  const other = await startHub(context, { admin: { port: 0 }, log })
  const page = await openPage(context, chromium.tabs, other.adminUrl ?? '', { mayFail: /./ })
  const row = page.getByRole('row').filter({ hasText: name })
  await row.getByText('4,321', { exact: true }).waitFor()
  await row.getByText('98,765', { exact: true }).waitFor()
  // The note of this node is of the time before its reader came.
  const reader = await fetch(`${other.url}/events/orders/42`)
  await page.getByRole('row', { name: /this one .* 1 \d+ / }).waitFor()
  await reader.body?.cancel()
  expect(await foreignElements(page)).toBe(0)
})

test('a channel is invalidated, but not before a second look', async (context) => {
  const server = await startHub(context)
  const page = await openDashboard(context, server)
  const { id } = await server.hub.publish('orders/42', { text: 'one' })
  await page.getByLabel('Channels that begin with').fill('orders/')
  await press(page, 'Invalidate orders/42')
  await press(page, 'Cancel')
  expect((await server.hub.admin.window('orders/42')).events).toBe(1)
  await press(page, 'Invalidate orders/42')
  await press(page, 'Invalidate')
  await context.expect.poll(() => toldOf(server, id), patience).toContain('"reason":"forced"')
})

test('an action that follows a cancelled one at once is asked about', async (context) => {
  const server = await startHub(context)
  const page = await openDashboard(context, server)
  await server.hub.publish('orders/42', { text: 'one' })
  await page.getByLabel('Channels that begin with').fill('orders/')
  await press(page, 'Invalidate orders/42')
  await page.evaluate(async () => {
    const click = (text: string) => {
      const buttons = [...document.querySelectorAll('button')]
      buttons.find(({ textContent }) => textContent === text)?.click()
    }
    click('Cancel')
    // Within one task: the dialog is closed by now, and the browser has yet to tell the page.
    while (document.querySelector('dialog')?.open) await undefined
    click('Invalidate orders/42')
  })
  await press(page, 'Invalidate')
  await context.expect.poll(async () => (await server.hub.admin.window('orders/42')).events, patience).toBe(0)
})

test('a reader is disconnected', async (context) => {
  const server = await startHub(context)
  const page = await openDashboard(context, server)
  const reader = await fetch(`${server.url}/events/orders/42`)
  await page.getByLabel('Connections of the channel').fill('orders/42')
  await press(page, /^Disconnect c_/)
  await press(page, 'Disconnect')
  expect(await reader.text()).toContain('"reason":"admin"')
})

test('the hub is drained, and the dashboard stays to see it', async (context) => {
  const server = await startHub(context)
  const page = await openDashboard(context, server)
  const reader = await fetch(`${server.url}/events/orders/42`)
  await press(page, 'Drain')
  await press(page.getByRole('dialog'), 'Drain')
  expect(await reader.text()).toContain('"reason":"drain"')
  await page.getByText('drain', { exact: true }).waitFor()
})

test('after a kill of the server it says so, and goes on when it is back', async (context) => {
  const program = await startServer(context, { REJOIN_ADMIN_TOKEN: token })
  const page = await openPage(context, chromium.tabs, `${program.url}/dashboard`, { mayFail: /./ })
  await signIn(page, token)
  await figure(page, 'Connections').waitFor()
  await program.kill()
  await page.locator('header .state[data-state="away"]').waitFor()
  await press(page, 'Drain')
  await press(page.getByRole('dialog'), 'Drain')
  await page.getByRole('alert').getByText('The server does not answer.').waitFor()
  await press(page, 'Cancel')
  await program.restart()
  await page.locator('header .state[data-state="connected"]').waitFor()
  const reader = await fetch(`${program.url}/events/orders/42`)
  await context.expect.poll(() => figure(page, 'Connections').textContent(), patience).toBe('1')
  await reader.body?.cancel()
})

test('on the admin port it opens by itself when there is no token', async (context) => {
  const other = await startHub(context, { admin: { port: 0 } })
  const page = await openPage(context, chromium.tabs, other.adminUrl ?? '', { mayFail: /./ })
  await figure(page, 'Connections').waitFor()
})

test('hostile names are shown as text', async (context) => {
  const server = await startHub(context)
  const page = await openDashboard(context, server)
  for (const text of hostileTexts) {
    const channel = `x/${text}`
    const isTaken = await server.hub.publish(channel, { text }).then(
      () => true,
      () => false,
    )
    const reader = await fetch(`${server.url}/events/x?channel=${encodeURIComponent(channel)}`, {
      headers: { 'user-agent': text.replaceAll(/[^ -~]/g, '') },
    })
    await reader.body?.cancel()
    if (!isTaken) continue
    await page.getByLabel('Channels that begin with').fill(channel)
    await page.getByRole('cell', { name: channel, exact: true }).first().waitFor()
  }
  expect(await foreignElements(page)).toBe(0)
})

describe.each([
  ['a phone', phone],
  ['a desk', desktop],
])('on %s', (_name, viewport) => {
  test.for(['light', 'dark'] as const)('it fits, and nobody is kept out of it (%s)', async (colorScheme, context) => {
    const server = await startHub(context)
    await server.hub.publish('orders/42', { text: 'one' })
    const page = await openDashboard(context, server, { viewport, colorScheme })
    await page.getByRole('cell', { name: 'orders/42', exact: true }).waitFor()
    await expectNoSidewaysScroll(page)
    expect(await seriousBarriers(page)).toEqual([])
  })

  test('nothing moves while figures come in', async (context) => {
    const server = await startHub(context)
    const page = await openDashboard(context, server, { viewport })
    const reader = await fetch(`${server.url}/events/orders/42`)
    for (const text of ['one', 'two']) await server.hub.publish('orders/42', { text })
    await context.expect.poll(() => figure(page, 'Deliveries/s').textContent(), patience).not.toBe('–')
    await context.expect.poll(() => figure(page, 'Connections').textContent(), patience).toBe('1')
    await page.getByRole('cell', { name: 'orders/42', exact: true }).first().waitFor()
    expect(await page.evaluate(layoutShift)).toBeLessThan(0.02)
    await reader.body?.cancel()
  })
})

test('it weighs at most 300 KB', () => {
  expect(weightOf('dashboard')).toBeLessThan(300_000)
})

/** The texts that do not fit where they are shown. Names end in an ellipsis where there is room for their other columns only. */
function cutTexts(): string[] {
  const isPhone = innerWidth <= 760
  return [...document.querySelectorAll('.rows, td, th, li, dd, dt, h2, h3, p')]
    .filter((element) => isPhone || !element.matches('.name'))
    .filter(({ scrollWidth, clientWidth }) => clientWidth > 0 && scrollWidth > clientWidth + 1)
    .map((element) => element.textContent ?? '')
}

/** How many rows show in part, once a list that was scrolled there has come to rest. */
async function cutRows(list: Element, top: number): Promise<number> {
  list.scrollTop = top
  await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
  const head = list.querySelector('thead')?.getBoundingClientRect().height ?? 0
  const { top: edge } = list.getBoundingClientRect()
  const [from, to] = [edge + head, edge + list.clientHeight]
  return [...list.querySelectorAll('tbody tr')].filter((row) => {
    const { top, bottom } = row.getBoundingClientRect()
    const seen = Math.min(bottom, to) - Math.max(top, from)
    return seen > 2 && bottom - top - seen > 2
  }).length
}

const patience = { timeout: 20_000 }

/** A hub of the test's own, which ends with it. */
async function startHub({ onTestFinished }: TestContext, options: ServeOptions = { admin: { token, port: 0 } }) {
  const server = await serve({ port: 0, ...options })
  onTestFinished(() => server.close({ withinMs: 0 }))
  return server
}

async function openDashboard(context: TestContext, server: Serving, options: PageOptions = {}): Promise<Page> {
  const page = await openPage(context, chromium.tabs, `${server.url}/dashboard`, { mayFail: /admin/, ...options })
  await signIn(page, token)
  await figure(page, 'Connections').waitFor()
  return page
}

async function signIn(page: Page, secret: string): Promise<void> {
  await page.getByLabel('Admin token').fill(secret)
  await page.getByLabel('Admin token').press('Enter')
}

function figure(page: Page, name: string) {
  return page.locator(`[data-figure="${name}"]`)
}

/** What a reader is told that comes back with this id. */
async function toldOf(server: Serving, id: string): Promise<string> {
  const { body } = await fetch(`${server.url}/events/orders/42`, { headers: { 'Last-Event-ID': id } })
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
  const { value = '' } = (await reader?.read()) ?? {}
  await reader?.cancel()
  return value
}
