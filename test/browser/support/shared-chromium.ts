import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { launchChromium, launchPlainChromium, type PlainChromium } from './chromium.ts'
import { shareTabs } from './open-tab.ts'

/** One Chromium for all files that a worker runs. */
export interface SharedChromium {
  readonly browser: Browser
  /**
   * One window for all tests of a file. Each context has a window of its own, which takes Chromium longer than most tests.
   * Another file gets another one: the cookies of 127.0.0.1 are those of all its ports.
   */
  readonly tabs: BrowserContext
  /** Tabs that accept a certificate which nobody should trust. */
  readonly trusting: { newPage(): Promise<Page> }
}

/** Ready before the first test of the file that calls this. */
export function sharedChromium(): SharedChromium {
  let shared: SharedChromium

  // A machine that is busy takes its time to start one.
  beforeAll(async () => {
    const browser = await runningChromium()
    const trusting = { newPage: () => browser.newPage({ ignoreHTTPSErrors: true }) }
    shared = { browser, tabs: await browser.newContext(), trusting }
    shareTabs(shared.tabs)
  }, 60_000)
  afterAll(() => shared.tabs.close())

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

let running: Browser | undefined

/** Playwright ends the browser together with this process. */
async function runningChromium(): Promise<Browser> {
  if (!running?.isConnected()) running = await launchChromium()
  return running
}

/** A Chromium as its user has it, for all tests of a file. */
export function plainChromium(): Pick<PlainChromium, 'context'> {
  let plain: PlainChromium

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
