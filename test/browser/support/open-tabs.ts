import type { BrowserContext, Page } from 'playwright-core'
import type { TestContext } from 'vitest'
import { areConnected, hasty, visit } from './readers.ts'
import { openStage, type Stage } from './stage.ts'

/** Tabs of one browser, each with a reader, opened one after the other: the first one reads for all. */
export async function openTabs(
  context: TestContext,
  window: BrowserContext,
  count: number,
): Promise<Stage & { readonly tabs: readonly Page[] }> {
  const stage = await openStage(context, window)
  const tabs = [stage.page]
  while (tabs.length < count) {
    const tab = await window.newPage()
    context.onTestFinished(() => tab.close())
    await visit(tab, `http://127.0.0.1:${stage.proxy.port}/`)
    tabs.push(tab)
  }
  for (const tab of tabs) {
    await tab.evaluate((options) => read('tab', options), { ...hasty, shareAcrossTabs: 'user' })
    await areConnected(tab)
  }
  return { ...stage, tabs }
}
