import { setTimeout } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { beforeAll, expect, type TestContext, test } from 'vitest'
import { type BundledPage, bundlePage } from './support/bundled-page.ts'
import { press, seriousBarriers } from './support/page-check.ts'
import { sharedChromium } from './support/shared-chromium.ts'
import { openStage } from './support/stage.ts'

// The React binding by what is on the screen. What it does in detail is tested in packages/client/test/react.

declare global {
  var rendersPerFrame: number[]
  var session: { token: string | undefined; signIns: number }
  function setSource(source: { url: string; token?: string; identity?: string }): void
}

const chromium = sharedChromium()
/** How long numbers flow, in seconds: `REJOIN_FLOW_SECONDS=60 npx vitest run --project services bindings` for a minute. */
const flowSeconds = Number(process.env.REJOIN_FLOW_SECONDS ?? 10)
let bundle: BundledPage

beforeAll(async () => {
  bundle = await bundlePage('bindings')
}, 60_000)

/** A page with the binding, and a hub whose answers a test can replace. */
async function open(context: TestContext, query = '') {
  const answers: { isSilent?: boolean; status?: number; headers?: Record<string, string>; text?: string } = {}
  const stage = await openStage(
    context,
    chromium.tabs,
    {
      intercept(request, response) {
        const { isSilent, status, headers, text } = answers
        if (bundle.serve(request, response) || isSilent) return true
        if (!status || !request.url?.startsWith('/events/')) return false
        response.writeHead(status, { 'Content-Type': 'text/event-stream', ...headers })
        if (text) response.write(text)
        else response.end()
        return true
      },
    },
    `/bindings${query}`,
  )
  const streams = () => stage.site.requests.filter(({ url }) => url.startsWith('/events/'))
  return { ...stage, answers, streams, status: stage.page.locator('.rejoin-status') }
}

const colorOf = (page: Page) =>
  page.locator('.rejoin-status-dot').evaluate((dot) => getComputedStyle(dot).backgroundColor)

const green = 'rgb(22, 163, 74)'
const red = 'rgb(220, 38, 38)'

test.concurrent('a dot while it is live, a countdown while it waits, a banner and a button when it is over', async (context) => {
  const { page, proxy, answers, status } = await open(context)
  await page.getByRole('img', { name: 'Live' }).waitFor()
  expect(await colorOf(page)).toBe(green)
  expect(await page.locator('.rejoin-status-text').isVisible()).toBe(false)
  expect(await seriousBarriers(page)).toEqual([])

  Object.assign(answers, { status: 503, headers: { 'Retry-After': '600' } })
  proxy.cutAll('reset')
  await status.getByText(/^The server is busy\. Next attempt in \d{3} s…$/).waitFor()
  const shown = await page.locator('.rejoin-status-text').textContent()
  await context.expect.poll(() => page.locator('.rejoin-status-text').textContent()).not.toBe(shown)
  expect(await page.getByRole('status').textContent()).toBe('The server is busy.')
  expect(await seriousBarriers(page)).toEqual([])

  answers.status = 404
  await press(page, 'Retry now')
  await status.getByText('Not found', { exact: true }).first().waitFor()
  expect(await colorOf(page)).toBe(red)
  expect(await page.getByRole('button').count()).toBe(0)
  expect(await seriousBarriers(page)).toEqual([])
})

test.concurrent('the keyboard focus stays on the button while an attempt runs', async (context) => {
  const { page, proxy, answers, status } = await open(context)
  await page.getByRole('img', { name: 'Live' }).waitFor()
  Object.assign(answers, { status: 503, headers: { 'Retry-After': '600' } })
  proxy.cutAll('reset')
  await page.getByRole('button', { name: 'Retry now' }).focus()
  answers.isSilent = true
  await page.keyboard.press('Enter')
  await status.getByText('Reconnecting…').first().waitFor()
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Retry now')
  Object.assign(answers, { isSilent: false, status: undefined })
  await page.keyboard.press('Enter')
  await page.getByRole('img', { name: 'Live' }).waitFor()
  expect(await page.getByRole('button').count()).toBe(0)
})

test.concurrent('in a narrow page the label of the button stays on one line', async (context) => {
  const { page, proxy, answers } = await open(context)
  await page.getByRole('img', { name: 'Live' }).waitFor()
  Object.assign(answers, { status: 503, headers: { 'Retry-After': '600' } })
  proxy.cutAll('reset')
  const button = page.getByRole('button', { name: 'Retry now' })
  await button.waitFor()
  const lines = await button.evaluate((it) => {
    document.body.style.width = '300px'
    const label = document.createRange()
    label.selectNodeContents(it)
    return label.getClientRects().length
  })
  expect(lines).toBe(1)
})

test.concurrent('a pulse while the first connection is made', async (context) => {
  const { page, answers, status } = await open(context)
  answers.isSilent = true
  await page.evaluate(() => setSource({ url: '/events/others' }))
  await page.locator('.rejoin-status[data-status=connecting]').waitFor({ state: 'attached' })
  await status.getByText('Connecting…').first().waitFor()
  const animation = page.locator('.rejoin-status-dot').evaluate((dot) => getComputedStyle(dot).animationName)
  expect(await animation).toBe('rejoin-pulse')
})

test.concurrent('a notice when a heartbeat is overdue', async (context) => {
  const { page, proxy, answers, status } = await open(context)
  await page.getByRole('img', { name: 'Live' }).waitFor()
  // Overdue after 8 s, and given up after 11 s.
  const hello = { resumed: true, heartbeatMs: 3000, connection: 'c_1' }
  Object.assign(answers, { status: 200, text: `event: hello\ndata: ${JSON.stringify(hello)}\n\n` })
  proxy.cutAll('reset')
  await status.getByText('May be out of date').first().waitFor()
})

test.concurrent('a word when the server has nothing more to send', async (context) => {
  const { page, site, status } = await open(context)
  await page.getByRole('img', { name: 'Live' }).waitFor()
  await site.hub.end('numbers')
  await status.getByText('Ended').first().waitFor()
  expect(await page.getByRole('button').count()).toBe(0)
})

test.concurrent('the element shows the same states in a page without a framework', async (context) => {
  const { page, proxy, answers } = await open(context)
  await page.evaluate(() => {
    const element = document.createElement('rejoin-status')
    element.setAttribute('src', '/events/others')
    document.body.append(element)
  })
  const element = page.locator('rejoin-status')
  await element.getByRole('img', { name: 'Live' }).waitFor()
  Object.assign(answers, { status: 503, headers: { 'Retry-After': '600' } })
  proxy.cutAll('reset')
  await element.getByText(/^The server is busy\. Next attempt in \d{3} s…$/).waitFor()
  expect(await seriousBarriers(page)).toEqual([])
  delete answers.status
  await press(element, 'Retry now')
  await element.getByRole('img', { name: 'Live' }).waitFor()
})

test.concurrent('a login, after which the same stream goes on with what was missed', async (context) => {
  const { page, site, proxy, answers, status, streams } = await open(context, '?token')
  await page.getByRole('img', { name: 'Live' }).waitFor()
  await site.hub.publish('numbers', { data: 1 })
  await page.getByText('1 events').waitFor()
  answers.status = 401
  proxy.cutAll('reset')
  await status.getByText('Signed out').first().waitFor()
  await site.hub.publish('numbers', { data: 2 })
  delete answers.status
  await press(page, 'Sign in')
  await page.getByText('2 events, in order').waitFor()
  expect(await page.evaluate(() => session.signIns)).toBe(1)
  expect(streams().at(-1)?.cursor).not.toBeNull()
})

test.concurrent('StrictMode opens one connection, and another token or URL one more each', async (context) => {
  const { page, site, streams } = await open(context, '?strict')
  await page.getByRole('img', { name: 'Live' }).waitFor()
  await site.hub.publish('numbers', { data: 1 })
  await page.getByText('1 events').waitFor()
  expect(streams()).toHaveLength(1)

  await page.evaluate(() => setSource({ url: '/events/numbers', token: 'another', identity: 'ada' }))
  await context.expect.poll(() => streams().length).toBe(2)
  expect(streams()[1]?.cursor).not.toBeNull()
  await site.hub.publish('numbers', { data: 2 })
  await page.getByText('2 events, in order').waitFor()

  await page.evaluate(() => setSource({ url: '/events/others', token: 'another', identity: 'ada' }))
  await context.expect.poll(() => site.hub.readers('others')).toBe(1)
  await site.hub.publish('others', { data: 7 })
  await page.getByText('1 events, in order, from 7').waitFor()
  await context.expect.poll(() => site.hub.readers('numbers')).toBe(0)
  expect(streams()).toHaveLength(3)
})

test(
  `of 50 events a second for ${flowSeconds} s every one is seen, with one rendering per frame`,
  async (context) => {
    const { page, site } = await open(context)
    await page.bringToFront()
    await page.getByRole('img', { name: 'Live' }).waitFor()
    // What came before belongs to the start of the page.
    await page.evaluate(() => rendersPerFrame.splice(0))
    const count = 50 * flowSeconds
    const started = performance.now()
    for (let number = 1; number <= count; number++) {
      await setTimeout(started + number * 20 - performance.now())
      await site.hub.publish('numbers', { data: number })
    }
    await page.getByText(`${count} events, in order, from 1`).waitFor()
    const renders = await page.evaluate(() => rendersPerFrame)
    expect(Math.max(...renders)).toBe(1)
  },
  (flowSeconds + 50) * 1000,
)
