import type { Page } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { until } from './readers.ts'

/** Covers the page with another tab, as a user does. */
export async function hide(page: Page): Promise<void> {
  const cover = await page.context().newPage()
  onTestFinished(() => cover.close())
  await until(page, () => document.visibilityState === 'hidden')
}

/** Freezes the page behind another tab, as Chromium does to save power. Returns what brings it back. */
export async function freeze(page: Page): Promise<() => Promise<void>> {
  await hide(page)
  const session = await page.context().newCDPSession(page)
  await session.send('Page.setWebLifecycleState', { state: 'frozen' })
  return async () => {
    await session.send('Page.setWebLifecycleState', { state: 'active' })
    await page.bringToFront()
  }
}
