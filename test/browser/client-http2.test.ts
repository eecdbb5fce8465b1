import { createSecureServer } from 'node:http2'
import { expect, test } from 'vitest'
import { openFaultProxy } from '../faults/fault-proxy.ts'
import { makeCertificate } from './certificate.ts'
import { startPublishing } from './publisher.ts'
import { areConnected, each, haveLost, openReaders, recordsOf, visit } from './readers.ts'
import { sharedChromium } from './shared-chromium.ts'
import { openSite, type SiteOptions } from './site.ts'

const chromium = sharedChromium()

// Made by openssl, which not every machine has.
const certificate = makeCertificate()

test.skipIf(!certificate)('over TLS and HTTP/2, cuts cost no reader an event on any transport', async (context) => {
  const serve = ((listener) =>
    createSecureServer({ key: certificate, cert: certificate }, listener as never)) as SiteOptions['serve']
  const site = await openSite({ serve: serve! })
  context.onTestFinished(() => site.close())
  const proxy = await openFaultProxy({ target: site, random: Math.random })
  context.onTestFinished(() => proxy.close())
  const page = await chromium.browser.newPage({ ignoreHTTPSErrors: true })
  context.onTestFinished(() => page.close())
  await visit(page, `https://127.0.0.1:${proxy.port}/`)
  await openReaders(page)
  const publisher = startPublishing(site)
  // All of them share one connection, and lose it together.
  for (const [cut, how] of (['reset', 'fin', 'reset'] as const).entries()) {
    await publisher.more(50)
    proxy.cutAll(how)
    await haveLost(page, cut + 1)
    await areConnected(page)
  }
  const published = await publisher.finish()
  expect(await recordsOf(page)).toEqual(each(published))
})
