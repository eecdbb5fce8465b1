import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { expect, test } from 'vitest'
import { goOffline } from './support/chromium.ts'
import { startPublishing } from './support/publisher.ts'
import { areConnected, areIn, each, hasty, openReaders, recordsOf, visit } from './support/readers.ts'
import { sharedChromium } from './support/shared-chromium.ts'
import { cutInTurn, openBusyStage, openStage } from './support/stage.ts'

// In each test a reader per transport runs beside the others, in one page, at 150 events/s. A number that one of them
// lacks was lost, one that it has twice was doubled.

const chromium = sharedChromium()

test.concurrent('cuts cost no reader an event', async (context) => {
  const stage = await openBusyStage(context, chromium.tabs)
  await cutInTurn(stage, ['reset', 'reset', 'reset', 'reset'], 40)
  const published = await stage.publisher.finish()
  expect(await recordsOf(stage.page)).toEqual(each(published))
})

// Chromium takes what it has of such a head for the whole: a status without its type, or with half of one.
test.concurrent('answers that are cut off in their heads cost no reader an event', async (context) => {
  const { page, proxy, publisher } = await openBusyStage(context, chromium.tabs, {}, { ...hasty, maxRetries: 1000 })
  // Before the status, in it, behind it, and in the type of a stream and of a poll.
  const places = [3, 5, 11, 14, 31, 38, 44]
  const cut = places.flatMap((place) => [place, place, place])
  proxy.onLink((link) => {
    const place = cut.shift()
    if (place !== undefined) void link.cutAt(place, 'fin')
  })
  proxy.cutAll('reset')
  await expect.poll(() => cut).toEqual([])
  await areConnected(page)
  await publisher.more(40)
  const published = await publisher.finish()
  expect(await recordsOf(page)).toEqual(each(published))
})

// Longer ones take longer: OUTAGES=30.
const outages = (process.env.OUTAGES ?? '1,5').split(',').map(Number)

test.concurrent.for(outages)('an outage of %i s costs no reader an event', async (seconds, context) => {
  const { page, proxy, publisher } = await openBusyStage(context, chromium.tabs)
  await publisher.more(50)
  proxy.reject()
  proxy.cutAll('reset')
  await publisher.more(150 * seconds)
  expect(await page.evaluate(() => Object.values(readers).every(({ stream }) => stream.state.stale))).toBe(true)
  proxy.accept()
  await areConnected(page)
  await publisher.more(50)
  const published = await publisher.finish()
  expect(await recordsOf(page)).toEqual(each(published))
})

test.concurrent('a page that was offline is back as soon as the network is, and has every event', async (context) => {
  // So patient that nobody comes back by itself while the test runs.
  const patient = { retryMs: 300_000, maxRetryMs: 300_000 }
  const { page, proxy, publisher } = await openBusyStage(context, chromium.tabs, {}, patient)
  await publisher.more(50)
  const goOnline = await goOffline(page)
  // Chromium lets go of nothing by itself when it is told that it is offline.
  proxy.cutAll('reset')
  await areIn(page, 'backoff')
  await publisher.more(100)
  await goOnline()
  await areConnected(page)
  const published = await publisher.finish()
  expect(await recordsOf(page)).toEqual(each(published))
})

test.concurrent('a page that is loaded again goes on where it was, with every event once', async (context) => {
  const { site, page } = await openStage(context, chromium.tabs)
  const kept = { ...hasty, persist: 'session' } as const
  await openReaders(page, kept)
  const publisher = startPublishing(site)
  for (let reload = 0; reload < 3; reload += 1) {
    await publisher.more(60)
    await visit(page, page.url())
    await openReaders(page, kept)
  }
  await publisher.more(30)
  const published = await publisher.finish()
  expect(await recordsOf(page)).toEqual(each(published))
  // Every start found a place: nothing was asked for from the head but by the first page.
  const first = site.requests.filter(({ url, cursor }) => cursor === null && !url.includes('lastEventId='))
  expect(first.length).toBe(3)
})

test.concurrent('a hub that lost its memory says so, and everything after that arrives', async (context) => {
  const { site, page, publisher } = await openBusyStage(context, chromium.tabs)
  await publisher.more(60)
  await site.stop()
  // Else the last number might be published before they are back, and be part of what they are told is gone.
  await areIn(page, 'backoff')
  const before = publisher.published.length
  await site.start()
  await areConnected(page)
  await publisher.more(60)
  await publisher.finish()
  const records = await recordsOf(page)
  for (const [name, got] of Object.entries(records)) {
    const latest = await page.evaluate((name) => readers[name]?.gap?.latest ?? '', name)
    const gap = got.indexOf('gap:epoch')
    expect(got.slice(0, gap)).toEqual(publisher.published.slice(0, gap).map(({ n }) => n))
    expect(gap).toBeLessThanOrEqual(before)
    // Ids of one branch sort as text.
    const owed = publisher.published.slice(before).filter(({ id }) => id > latest)
    expect(got.slice(gap + 1)).toEqual(owed.map(({ n }) => n))
  }
})

test.concurrent('a hub that kept its log on disk is restarted, and no reader notices more than a pause', async (context) => {
  const directory = await mkdtemp(join(tmpdir(), 'rejoin-browser-'))
  context.onTestFinished(() => rm(directory, { recursive: true }))
  const { site, page, publisher } = await openBusyStage(context, chromium.tabs, { log: () => lmdbLog(directory) })
  for (let restart = 0; restart < 2; restart += 1) {
    await publisher.more(60)
    await site.stop()
    await areIn(page, 'backoff')
    await site.start()
    await areConnected(page)
  }
  const published = await publisher.finish()
  expect(await recordsOf(page)).toEqual(each(published))
})
