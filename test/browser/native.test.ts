import type { Page } from 'playwright-core'
import { describe, expect, type TestContext, test } from 'vitest'
import { goOffline } from './support/chromium.ts'
import { startPublishing } from './support/publisher.ts'
import { until } from './support/readers.ts'
import { type Answer, type Scripts, scriptedAnswers } from './support/scripted-answers.ts'
import { sharedChromium } from './support/shared-chromium.ts'
import { openSite, type Site } from './support/site.ts'
import { openStage, type Stage } from './support/stage.ts'

// What Chromium's own EventSource does, without our client. docs/reference/browsers.md has it as a table; what follows
// from it for a hub or a client stands above each test.

const chromium = sharedChromium()

const leaving: Answer = { text: 'retry: 10\nid: 7\ndata: a\n\n' }
const stays: Answer = { stays: true, text: ': here\n\n' }

// So a page needs no code to resume on a hub, as long as it is not loaded again.
test.concurrent('the browser’s EventSource resumes on a hub by itself after cuts, with every event once', async (context) => {
  const { site, proxy, page } = await openStage(context, chromium.tabs, {}, '/native')
  await listenTo(page, '/events/numbers', 1)
  const publisher = startPublishing(site)
  for (let cuts = 1; cuts <= 2; cuts += 1) {
    await publisher.more(30)
    proxy.cutAll('reset')
    await hasOpened(page, cuts + 1)
  }
  const published = await publisher.finish()
  await until(page, () => natives.at(-1)!.told.includes('end'))
  const told = await toldOf(page)
  expect(told.filter((word) => word !== 'open' && word !== 'connecting')).toEqual(published)
  expect(cursorsOf(site).map((cursor) => cursor !== null)).toEqual([false, true, true])
})

// So a page that is loaded again has to keep its cursor itself, and to send it in the URL.
test.concurrent('a new EventSource starts without a cursor, also after a reload', async (context) => {
  const { site, page } = await openStage(context, chromium.tabs, {}, '/native')
  await listenTo(page, '/events/numbers', 1)
  await page.reload()
  await until(page, () => 'natives' in globalThis)
  await listenTo(page, '/events/numbers', 1)
  expect(cursorsOf(site)).toEqual([null, null])
})

// So a user with seven tabs waits for ever in the last, unless the hub is reached by HTTP/2.
test.concurrent('on HTTP/1.1 the seventh stream of a browser waits until another one ends', async (context) => {
  const { site, page } = await openStage(context, chromium.tabs, {}, '/native')
  await page.evaluate(() => {
    for (let tab = 1; tab <= 7; tab += 1) listen(`/events/numbers?tab=${tab}`)
  })
  await until(page, () => natives.filter(({ told }) => told.includes('open')).length === 6)
  expect(site.requests.length).toBe(6)
  await page.evaluate(() => natives.find(({ told }) => told.includes('open'))?.source.close())
  await until(page, () => natives.every(({ told }) => told.includes('open')))
})

describe.concurrent('cursors', () => {
  // So `id` without a value is how a server says that there is no place to come back to.
  test.concurrent('an empty id clears the cursor', async (context) => {
    const { page, site } = await openScripted(context, [leaving, { text: 'id\ndata: b\n\n' }, stays])
    await listenTo(page, '/scripted', 3)
    expect(cursorsOf(site)).toEqual([null, '7', null])
  })

  // So heartbeats on a new connection are harmless, whatever the letter of the standard says.
  test.concurrent('a comment on a new connection leaves the cursor alone', async (context) => {
    const { page, site } = await openScripted(context, [leaving, { text: ': here\n\n' }, stays])
    await listenTo(page, '/scripted', 3)
    expect(cursorsOf(site)).toEqual([null, '7', '7'])
  })

  // So an id alone would do as a checkpoint here. Not in every engine, so a hub's has data (§4.9).
  test.concurrent('an id without data counts', async (context) => {
    const { page, site } = await openScripted(context, [{ text: 'retry: 10\nid: 7\n\n' }, stays])
    await listenTo(page, '/scripted', 2)
    expect(cursorsOf(site)).toEqual([null, '7'])
  })

  // So a cut in the middle of an event costs nothing: it is asked for again.
  test.concurrent('the id of an event that was cut off does not count', async (context) => {
    const text = 'retry: 10\nid: 7\ndata: a\n\nid: 8\ndata: b\n'
    const { page, site } = await openScripted(context, [{ text }, stays])
    await listenTo(page, '/scripted', 2)
    expect(cursorsOf(site)).toEqual([null, '7'])
    expect(await toldOf(page)).toEqual(['open', 'a', 'connecting', 'open'])
  })
})

describe.concurrent('the browser’s EventSource ends for good on', () => {
  // So a hub answers 200 whatever the cursor (§4.2), and our client opens the next EventSource itself.
  test.concurrent('any status but 200, also one that a server means for a while', async (context) => {
    const statuses = [204, 401, 403, 404, 408, 429, 500, 502, 503]
    const { page } = await openScripted(
      context,
      scriptFor(statuses, (status) => [leaving, { status }]),
    )
    await page.evaluate((statuses) => {
      for (const status of statuses) listen(`/${status}`)
    }, statuses)
    await until(page, () => natives.every(({ source }) => source.readyState === EventSource.CLOSED))
    const told = await page.evaluate(() => natives.map(({ told }) => told))
    expect(told).toEqual(statuses.map(() => ['open', 'a', 'connecting', 'closed']))
  })

  // So a proxy that answers with a page of its own ends every EventSource behind it.
  test.concurrent('another content type', async (context) => {
    const headers = { 'Content-Type': 'text/html' }
    const { page } = await openScripted(context, [{ text: 'retry: 10\n\n' }, { headers }])
    await listenTo(page, '/scripted')
    await hasGivenUp(page)
    expect(await toldOf(page)).toEqual(['open', 'connecting', 'closed'])
  })

  // So a proxy that is restarted at the wrong moment ends a reader. Our client takes half a type for a cut.
  test.concurrent('a head that is cut off in its type, but not by a reset', async (context) => {
    const ends = { fin: 'closed', reset: 'open' } as const
    for (const how of ['fin', 'reset'] as const) {
      const { page, proxy } = await openStage(context, chromium.tabs, {}, '/native')
      // The line by which the page came is not to be used again.
      proxy.cutAll('reset')
      const off = proxy.onLink((link) => {
        off()
        void link.cutAt(40, how)
      })
      await listenTo(page, '/events/numbers')
      await until(page, (end) => natives.at(-1)!.told.includes(end), ends[how])
      expect(await toldOf(page)).toEqual(how === 'fin' ? ['closed'] : ['connecting', 'open'])
    }
  })

  // So a hub behind a wrong CORS header loses its readers at once, and not only while that lasts.
  test.concurrent('an origin that does not allow the page', async (context) => {
    const { page } = await openScripted(context, [stays])
    const other = await openOther(context, {
      '/scripted': [{ headers: { 'Access-Control-Allow-Origin': 'http://else.invalid' } }],
    })
    await listenTo(page, `http://127.0.0.1:${other.port}/scripted`)
    await hasGivenUp(page)
    expect(await toldOf(page)).toEqual(['closed'])
  })
})

// So a hub that is not there yet, or a name that is not known yet, needs no care here; other engines give up on a name.
test.concurrent('a port where nobody listens and a name that is not known are tried again', async (context) => {
  const { page } = await openScripted(context, [stays])
  await page.evaluate(() => {
    listen('http://127.0.0.1:1/scripted')
    listen('http://nowhere.invalid/scripted')
  })
  await until(page, () => natives.every(({ told }) => told.length > 0))
  expect(await page.evaluate(() => natives.map(({ told }) => told[0]))).toEqual(['connecting', 'connecting'])
})

describe.concurrent('redirects', () => {
  const statuses = [301, 302, 303, 307, 308]

  // So who moves a stream, even for a while (302, 307), has moved its readers until they are loaded again.
  test.concurrent('the EventSource returns to the address it was redirected to, whatever the status', async (context) => {
    const { page, site } = await openScripted(context, {
      ...scriptFor(statuses, (status) => [{ status, headers: { Location: `/${status}/moved` } }]),
      ...scriptFor(
        statuses.map((status) => `${status}/moved`),
        () => [leaving, stays],
      ),
    })
    for (const status of statuses) {
      site.requests.length = 0
      await listenTo(page, `/${status}`, 2)
      expect(site.requests.map(({ url, cursor }) => [url, cursor])).toEqual([
        [`/${status}`, null],
        [`/${status}/moved`, null],
        [`/${status}/moved`, '7'],
      ])
    }
  })

  // So any site can send its readers to a hub with a cursor of its choice: a hub takes none on trust (§3.2).
  test.concurrent('the cursor follows a redirect to another origin, without a preflight', async (context) => {
    const other = await openOther(
      context,
      scriptFor(statuses, () => [stays]),
    )
    const elsewhere = (status: number) => ({ Location: `http://127.0.0.1:${other.port}/${status}` })
    const moves = scriptFor(statuses, (status) => [leaving, { status, headers: elsewhere(status) }])
    const { page } = await openScripted(context, moves)
    for (const status of statuses) await listenTo(page, `/${status}`, 2)
    const asked = other.requests.map(({ method, url, cursor }) => [method, url, cursor])
    expect(asked).toEqual(statuses.map((status) => ['GET', `/${status}`, '7']))
  })
})

describe.concurrent('waits', () => {
  // So a hub that is busy can spread its readers with every word it says (§4.11).
  test.concurrent('each `retry:` is honoured, up or down, ten times in a row', async (context) => {
    const waits = [20, 200, 10, 150, 0, 100, 30, 250, 5, 50]
    const answers = waits.map((ms) => ({ text: `retry: ${ms}\n\n` }))
    const { page, site, ends } = await openScripted(context, [...answers, stays])
    await listenTo(page, '/scripted', 11)
    const waited = site.requests.slice(1).map(({ at }, index) => at - ends[index]!)
    // The time of a server and that of a browser may differ by a rounding.
    for (const [index, ms] of waits.entries()) expect(waited[index]).toBeGreaterThanOrEqual(ms - 2)
    // None of them waited for the three seconds that it waits unasked.
    expect(Math.max(...waited)).toBeLessThan(2500)
  })

  // So a server that makes a mistake in `retry:` gets what the last good one said; with an empty one, three seconds.
  test.concurrent('a `retry:` that is no number changes nothing, and an empty one means three seconds', async (context) => {
    const { page, site, ends } = await openScripted(context, [
      { text: 'retry: 50\n\n' },
      { text: 'retry: 9000x\n\n' },
      { text: 'retry: -9000\n\n' },
      { text: 'retry:\n\n' },
      stays,
    ])
    await listenTo(page, '/scripted', 5)
    const waited = site.requests.slice(1).map(({ at }, index) => at - ends[index]!)
    expect(Math.max(...waited.slice(0, 3))).toBeLessThan(2500)
    expect(waited[3]).toBeGreaterThanOrEqual(2998)
  })

  // So a page that is to be back with the network needs a client that listens for `online`.
  test.concurrent('the network coming back does not shorten a wait', async (context) => {
    const { page, site, proxy } = await openScripted(context, [
      { text: 'retry: 1500\nid: 7\ndata: a\n\n', stays: true },
    ])
    await listenTo(page, '/scripted')
    await until(page, () => natives.at(-1)!.told.includes('a'))
    const goOnline = await goOffline(page)
    const cutAt = performance.now()
    proxy.cutAll('reset')
    await until(page, () => natives.at(-1)!.told.includes('connecting'))
    await goOnline()
    await hasOpened(page, 2)
    expect(cursorsOf(site)).toEqual([null, '7'])
    expect(site.requests[1]!.at - cutAt).toBeGreaterThanOrEqual(1498)
  })

  // So `offline` says nothing about the streams that are open, and a client must not drop them for it.
  test.concurrent('a stream that is open goes on while the browser says that it is offline', async (context) => {
    const { page, site } = await openStage(context, chromium.tabs, {}, '/native')
    await listenTo(page, '/events/numbers', 1)
    await goOffline(page)
    await until(page, () => !navigator.onLine)
    await site.hub.publish('numbers', { text: 'offline' })
    await until(page, () => natives.at(-1)!.told.includes('offline'))
    expect(await toldOf(page)).toEqual(['open', 'offline'])
  })
})

/** Opens a stage whose site answers by a script; a list of answers is for `/scripted`. */
async function openScripted(
  context: TestContext,
  script: Scripts | readonly Answer[],
): Promise<Stage & { ends: readonly number[] }> {
  const { intercept, ends } = scriptedAnswers(Array.isArray(script) ? { '/scripted': script } : (script as Scripts))
  return { ...(await openStage(context, chromium.tabs, { intercept }, '/native')), ends }
}

/** Another origin that answers by a script. */
async function openOther(context: TestContext, scripts: Scripts): Promise<Site> {
  const site = await openSite(scriptedAnswers(scripts))
  context.onTestFinished(() => site.close())
  return site
}

function scriptFor<Name extends string | number>(names: readonly Name[], answers: (name: Name) => Answer[]): Scripts {
  return Object.fromEntries(names.map((name) => [`/${name}`, answers(name)]))
}

/** Opens an EventSource, and waits until it has opened so many times. */
async function listenTo(page: Page, url: string, opens = 0): Promise<void> {
  await page.evaluate((url) => listen(url), url)
  await hasOpened(page, opens)
}

async function hasOpened(page: Page, times: number): Promise<void> {
  await until(page, (times) => natives.at(-1)!.told.filter((word) => word === 'open').length >= times, times)
}

async function hasGivenUp(page: Page): Promise<void> {
  await until(page, () => natives.at(-1)!.source.readyState === EventSource.CLOSED)
}

/** What the page was told by its last EventSource. */
function toldOf(page: Page): Promise<string[]> {
  return page.evaluate(() => natives.at(-1)!.told)
}

function cursorsOf({ requests }: Site): (string | null)[] {
  return requests.map(({ cursor }) => cursor)
}
