import { expect, type TestContext, test } from 'vitest'
import { areConnected, until } from './support/readers.ts'
import { sharedChromium } from './support/shared-chromium.ts'
import { openStage } from './support/stage.ts'

// How soon a visible page is back after the network, beside the browser's own EventSource on the same page.

const chromium = sharedChromium()

const cutsInSeconds = [1, 2, 5, 10, 20, 30]
/** Of each kind: on HTTP/1.1, a browser has six connections to a hub. */
const readers = 3

test.concurrent.for([
  ['fails at once', 'reset'],
  ['gets no answer', 'silence'],
] as const)(
  'after 1 to 30 s in which every attempt %s, half of all streams are back within 1.5 s',
  async ([, how], context) => {
    const cuts = await Promise.all(cutsInSeconds.map((seconds) => returnsAfter(context, seconds, how)))
    for (const { seconds, ours, native } of cuts) {
      console.log(`${how}, ${seconds} s: back after ${ours.join(', ')} ms; EventSource ${native.join(', ')} ms`)
    }
    const ours = cuts.flatMap((cut) => cut.ours)
    const native = cuts.flatMap((cut) => cut.native)
    console.log(`${how}: median ${median(ours)} ms; EventSource ${median(native)} ms`)
    expect(median(ours)).toBeLessThanOrEqual(1500)
    // The longest wait is 3 s.
    expect(Math.max(...ours)).toBeLessThan(5000)
  },
)

/** @returns how long after the end of the cut each stream asked the hub again, in ms */
async function returnsAfter(context: TestContext, seconds: number, how: 'reset' | 'silence') {
  const { page, proxy, site } = await openStage(context, chromium.tabs, { retryMs: 2000, heartbeatMs: 25_000 })
  await page.addScriptTag({ url: '/page/native.js', type: 'module' })
  await until(page, () => 'natives' in globalThis)
  await page.evaluate((readers) => {
    for (let reader = 0; reader < readers; reader++) {
      read(`${reader}`, {})
      listen(`/events/numbers?native=${reader}`)
    }
  }, readers)
  await areConnected(page)
  await until(page, () => natives.every(({ source }) => source.readyState === EventSource.OPEN))
  expect(await page.evaluate(() => document.visibilityState)).toBe('visible')
  const before = site.requests.length
  proxy.reject(how)
  proxy.cutAll('reset')
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  const isBackAt = performance.now()
  proxy.accept()
  await context.expect.poll(() => site.requests.length - before).toBe(2 * readers)
  const returns = site.requests.slice(before)
  const after = (isOurs: boolean) =>
    returns.filter(({ url }) => url.includes('clientId') === isOurs).map(({ at }) => Math.round(at - isBackAt))
  return { seconds, ours: after(true), native: after(false) }
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]!
}
