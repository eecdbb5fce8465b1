import type { Browser, BrowserContext } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { launchChromium } from './chromium.ts'

/** One Chromium for all tests of a file. */
export interface SharedChromium {
  readonly browser: Browser
  /** One window of it for all of them: each context has a window of its own, which takes Chromium longer than most tests. */
  readonly tabs: BrowserContext
}

/** Launched before the first test of the file that calls this, and closed after the last. */
export function sharedChromium(): SharedChromium {
  let shared: SharedChromium

  beforeAll(async () => {
    const browser = await launchChromium()
    shared = { browser, tabs: await browser.newContext() }
  }, 60_000)
  afterAll(() => shared.browser.close())

  return {
    get browser() {
      return shared.browser
    },
    get tabs() {
      return shared.tabs
    },
  }
}
