import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { launchChromium, launchPlainChromium, type PlainChromium } from './chromium.ts'

/** One Chromium for all tests of a file. */
export interface SharedChromium {
  readonly browser: Browser
  /** One window of it for all of them: each context has a window of its own, which takes Chromium longer than most tests. */
  readonly tabs: BrowserContext
  /** Tabs of it that accept a certificate which nobody should trust. */
  readonly trusting: { newPage(): Promise<Page> }
}

/** Launched before the first test of the file that calls this, and closed after the last. */
export function sharedChromium(): SharedChromium {
  let shared: SharedChromium

  beforeAll(async () => {
    const browser = await launchChromium()
    const trusting = { newPage: () => browser.newPage({ ignoreHTTPSErrors: true }) }
    shared = { browser, tabs: await browser.newContext(), trusting }
  }, 60_000)
  afterAll(() => shared.browser.close())

  return {
    get browser() {
      return shared.browser
    },
    get tabs() {
      return shared.tabs
    },
    get trusting() {
      return shared.trusting
    },
  }
}

/** The same of a Chromium as its user has it. */
export function plainChromium(): Pick<PlainChromium, 'context'> {
  let plain: PlainChromium

  // A machine that is busy takes its time to start one.
  beforeAll(async () => {
    plain = await launchPlainChromium()
  }, 60_000)
  afterAll(() => plain.close())

  return {
    get context() {
      return plain.context
    },
  }
}
