import type { BrowserContext, Page } from 'playwright-core'
import type { TestContext } from 'vitest'
import type { Tabs } from './stage.ts'

/** A tab until the end of the test. In a window that shares its tabs, it may be one that another test has left. */
export async function openTab({ onTestFinished }: TestContext, tabs: Tabs): Promise<Page> {
  const idle = left.get(tabs)
  const page = idle?.pop() ?? (await tabs.newPage())
  onTestFinished(async ({ task }) => {
    // Not all: Playwright has listeners of its own.
    for (const event of ['console', 'dialog', 'pageerror']) page.removeAllListeners(event)
    const isFit = task.result?.state !== 'fail' && !unfit.has(page)
    if (idle && isFit && (await isEmptied(page))) idle.push(page)
    else await page.close()
  })
  return page
}

/** From now on tests get the tabs that others have left: a page in a new tab takes the processor five times as long. */
export function shareTabs(window: BrowserContext): void {
  left.set(window, [])
}

/** No other test gets this tab, because something was done to it that stays. */
export function keepFromOthers(page: Page): void {
  unfit.add(page)
}

const left = new WeakMap<Tabs, Page[]>()
const unfit = new WeakSet<Page>()

/** Takes from a tab what its page has kept there: the next hub may get the same port, and with it the same origin. */
async function isEmptied(page: Page): Promise<boolean> {
  try {
    await page.unrouteAll()
    await page.evaluate(() => sessionStorage.clear())
    await page.goto('about:blank')
    return true
  } catch {
    // It was closed, has crashed, or shows an error of the browser, whose storage is out of reach.
    return false
  }
}
