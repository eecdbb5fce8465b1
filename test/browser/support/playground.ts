import type { Page } from 'playwright-core'
import { type Serving, serve } from 'rejoin'
import type { TestContext } from 'vitest'
import { openPage, type PageOptions } from './page-check.ts'
import type { Tabs } from './stage.ts'

export type Lane = 'plain' | 'rejoin'

/** A hub of the test's own: the tabs of a browser have six connections to it in all. */
export async function startHub({ onTestFinished }: TestContext): Promise<Serving> {
  const server = await serve({ port: 0 })
  onTestFinished(() => server.close({ withinMs: 0 }))
  return server
}

/** Opens the playground and waits until numbers flow. */
export async function openPlayground(
  context: TestContext,
  tabs: Tabs,
  server: Serving,
  options: PageOptions = {},
): Promise<Page> {
  const page = await openPage(context, tabs, server.url, options)
  await page.getByText('Both are connected').waitFor()
  return page
}

export async function countsOf(page: Page, lane: Lane): Promise<Record<string, number>> {
  const counts = await page
    .locator(`#${lane} [data-count]`)
    .evaluateAll((elements) =>
      (elements as HTMLElement[]).map(({ dataset, textContent }) => [dataset.count, Number(textContent)]),
    )
  return Object.fromEntries(counts)
}

export async function receivedBy(page: Page, lane: Lane): Promise<number> {
  return (await countsOf(page, lane)).received ?? 0
}

export async function lagOf(page: Page): Promise<number> {
  const { published = 0, received = 0 } = await countsOf(page, 'rejoin')
  return published - received
}
