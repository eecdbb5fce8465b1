import type { ConnectOptions } from '@rejoin/client'
import type { Page } from 'playwright-core'
import type { TestContext } from 'vitest'
import { type FaultProxy, openFaultProxy } from '../faults/fault-proxy.ts'
import { type NumberPublisher, startPublishing } from './publisher.ts'
import { openReaders, visit } from './readers.ts'
import { openSite, type Site, type SiteOptions } from './site.ts'

/**
 * A site, and a page that reaches it through a proxy that can break the line. All of it ends with the test.
 *
 * @param path - of the page; `/native` is the one without our client
 */
export async function openStage(test: TestContext, tabs: Tabs, options: SiteOptions = {}, path = '/'): Promise<Stage> {
  const site = await openSite(options)
  test.onTestFinished(() => site.close())
  const proxy = await openFaultProxy({ target: site, random: Math.random })
  test.onTestFinished(() => proxy.close())
  const page = await tabs.newPage()
  test.onTestFinished(() => page.close())
  await visit(page, `http://127.0.0.1:${proxy.port}${path}`)
  return { site, proxy, page }
}

/** The same with a reader for each transport, and numbers that flow. */
export async function openBusyStage(
  test: TestContext,
  tabs: Tabs,
  options?: SiteOptions,
  connect?: ConnectOptions,
): Promise<BusyStage> {
  const stage = await openStage(test, tabs, options)
  await openReaders(stage.page, connect)
  return { ...stage, publisher: startPublishing(stage.site) }
}

/** A browser, or one of its contexts. */
export interface Tabs {
  newPage(): Promise<Page>
}

export interface Stage {
  readonly site: Site
  readonly proxy: FaultProxy
  readonly page: Page
}

export interface BusyStage extends Stage {
  readonly publisher: NumberPublisher
}
