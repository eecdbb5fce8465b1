import { expect, test } from 'vitest'
import { makeCertificate } from '../support/certificate.ts'
import { startPublishing } from './support/publisher.ts'
import { until } from './support/readers.ts'
import { sharedChromium } from './support/shared-chromium.ts'
import { openStage } from './support/stage.ts'

const chromium = sharedChromium()

// Made by openssl, which not every machine has.
const certificate = makeCertificate()

// So with HTTP/2 tabs do not wait for each other, and one cut is a cut of all of them: a hub must expect them together.
test.skipIf(!certificate)('twenty HTTP/2 streams share a connection, and all resume after a cut', async (context) => {
  const { site, proxy, page } = await openStage(context, chromium.trusting, { certificate }, '/native')
  await page.evaluate(() => {
    for (let tab = 1; tab <= 20; tab += 1) listen(`/events/numbers?tab=${tab}`)
  })
  await until(page, () => natives.every(({ told }) => told.includes('open')))
  expect(proxy.links.size).toBe(1)

  const publisher = startPublishing(site)
  await publisher.more(30)
  proxy.cutAll('reset')
  await until(page, () => natives.every(({ told }) => told.filter((word) => word === 'open').length === 2))
  const published = await publisher.finish()
  await until(page, () => natives.every(({ told }) => told.includes('end')))
  const told = await page.evaluate(() => natives.map(({ told }) => told))
  for (const words of told) expect(words.filter((word) => /^(\d+|end)$/.test(word))).toEqual(published)
})
