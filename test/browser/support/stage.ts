import { createSecureServer } from 'node:http2'
import type { ConnectOptions } from '@rejoin/client'
import type { Page } from 'playwright-core'
import type { TestContext } from 'vitest'
import type { Certificate } from '../../support/certificate.ts'
import { type Cut, type FaultProxy, openFaultProxy } from '../../support/fault-proxy/fault-proxy.ts'
import { openTab } from './open-tab.ts'
import { type NumberPublisher, startPublishing } from './publisher.ts'
import { areConnected, haveLost, openReaders, visit } from './readers.ts'
import { openSite, type Site, type SiteOptions } from './site.ts'

/**
 * A site, and a page that reaches it through a proxy that can break the line. All of it ends with the test.
 *
 * @param path - of the page; `/native` is the one without our client
 */
export async function openStage(test: TestContext, tabs: Tabs, options: StageOptions = {}, path = '/'): Promise<Stage> {
  const { certificate, behind, ...rest } = options
  const site = await openSite({ ...rest, ...(certificate ? { serve: overHttp2(certificate) } : {}) })
  test.onTestFinished(() => site.close())
  const front = await behind?.(site)
  if (front) test.onTestFinished(() => front.close())
  const proxy = await openFaultProxy({ target: front ?? site, random: Math.random })
  test.onTestFinished(() => proxy.close())
  const page = await openTab(test, tabs)
  await visit(page, `${certificate ? 'https' : 'http'}://127.0.0.1:${proxy.port}${path}`)
  return { site, proxy, page }
}

function overHttp2(certificate: Certificate): NonNullable<SiteOptions['serve']> {
  return ((listener) => createSecureServer({ ...certificate }, listener as never)) as NonNullable<SiteOptions['serve']>
}

/** Cuts the lines of all readers in these ways, one after the other, each time once they are connected and events flow. */
export async function cutInTurn(
  { page, proxy, publisher }: BusyStage,
  cuts: readonly Cut[],
  apart = 50,
): Promise<void> {
  for (const [index, cut] of cuts.entries()) {
    await publisher.more(apart)
    proxy.cutAll(cut)
    await haveLost(page, index + 1)
    await areConnected(page)
  }
}

/** The same with a reader for each transport, and numbers that flow. */
export async function openBusyStage(
  test: TestContext,
  tabs: Tabs,
  options?: StageOptions,
  connect?: ConnectOptions,
): Promise<BusyStage> {
  const stage = await openStage(test, tabs, options)
  await openReaders(stage.page, connect)
  return { ...stage, publisher: startPublishing(stage.site) }
}

export interface StageOptions extends Omit<SiteOptions, 'serve'> {
  /**
   * Makes the site speak HTTP/2 over TLS. Its tabs must not mind that nobody should trust it.
   * @defaultValue HTTP/1 without TLS
   */
  readonly certificate?: Certificate | undefined
  /**
   * What stands between the site and the proxy that breaks the line.
   * @defaultValue nothing
   */
  readonly behind?: (site: Site) => Promise<{ readonly port: number; close(): Promise<void> }>
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
