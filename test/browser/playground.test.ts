import type { Browser, Page } from 'playwright-core'
import { type Serving, serve } from 'rejoin'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { launchChromium } from './chromium.ts'

let browser: Browser
let server: Serving

beforeAll(async () => {
  server = await serve({ port: 0 })
  browser = await launchChromium()
})

afterAll(async () => {
  await browser.close()
  await server.close()
})

test('a cut leaves holes in the plain lane and none in Rejoin’s, and touches no other tab', async () => {
  const page = await openPlayground()
  const bystander = await openPlayground()
  await page.getByRole('button', { name: 'Cut both for 5 s' }).press('Enter')
  await page.getByText('Both lines are cut').waitFor()
  await page.getByText('Plain SSE has lost').waitFor()

  const plain = await countsOf(page, 'plain')
  expect(plain).toMatchObject({ replayed: 0, duplicates: 0 })
  expect(plain.missing).toBeGreaterThan(0)
  expect(await squaresOf(page, 'plain', 'missing')).toBe(plain.missing)

  const rejoin = await countsOf(page, 'rejoin')
  expect(rejoin).toMatchObject({ duplicates: 0, missing: 0 })
  expect(rejoin.replayed).toBeGreaterThan(0)
  expect(await squaresOf(page, 'rejoin', 'replayed')).toBe(rejoin.replayed)
  expect(await squaresOf(page, 'rejoin', 'missing')).toBe(0)

  for (const lane of ['plain', 'rejoin'] as const) {
    expect(await countsOf(bystander, lane)).toMatchObject({ replayed: 0, duplicates: 0, missing: 0 })
  }
})

test('a phone shows the page without a scroll to the side', async () => {
  const page = await openPlayground({ width: 375, height: 812 })
  const { scrollWidth, clientWidth } = await page.evaluate(() => document.documentElement)
  expect(scrollWidth).toBe(clientWidth)
})

type Lane = 'plain' | 'rejoin'

/** Opens the playground and waits until numbers flow. Whatever the browser complains of fails the test. */
async function openPlayground(viewport = { width: 1280, height: 800 }): Promise<Page> {
  const page = await browser.newPage({ viewport })
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('console', (message) => {
    const { url } = message.location()
    // A stream that was cut is the one error we ask for.
    const isCut = message.text().includes('net::ERR_') && url.includes('?tab=')
    if (message.type() !== 'log' && !isCut) complaints.push(`${message.text()} (${url})`)
  })
  onTestFinished(async () => {
    await page.close()
    expect(complaints).toEqual([])
  })
  await page.goto(server.url)
  await page.getByText('Both are connected').waitFor()
  return page
}

async function countsOf(page: Page, lane: Lane): Promise<Record<string, number>> {
  const counts = await page
    .locator(`#${lane} [data-count]`)
    .evaluateAll((elements) =>
      (elements as HTMLElement[]).map(({ dataset, textContent }) => [dataset.count, Number(textContent)]),
    )
  return Object.fromEntries(counts)
}

function squaresOf(page: Page, lane: Lane, kind: string): Promise<number> {
  return page.locator(`#${lane} .squares [data-kind="${kind}"]`).count()
}
