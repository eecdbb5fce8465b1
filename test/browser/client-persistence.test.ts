import { expect, test } from 'vitest'
import { hasty, until, visit } from './support/readers.ts'
import { sharedChromium } from './support/shared-chromium.ts'
import { openStage } from './support/stage.ts'

// A page that keeps its cursor and is loaded again: it gets an event again rather than never, or is told of what is gone.

const chromium = sharedChromium()
const kept = { ...hasty, persist: 'session' } as const

test.concurrent('a page that is loaded again while an async handler waits gets its event again', async (context) => {
  const { site, page } = await openStage(context, chromium.tabs)
  await page.evaluate((kept) => {
    read('mine', kept)
    readers.mine!.stream.on('step', () => new Promise(() => undefined))
  }, kept)
  await until(page, () => readers.mine!.stream.cursor)
  await site.hub.publish('numbers', { text: '1' })
  await site.hub.publish('numbers', { text: '2', type: 'step' })
  await site.hub.publish('numbers', { text: '3' })
  await until(page, () => gotOf('mine').length === 3)
  await visit(page, page.url())
  await page.evaluate((kept) => read('mine', kept), kept)
  await until(page, () => gotOf('mine').length === 5)
  expect(await page.evaluate(() => gotOf('mine'))).toEqual(['1', '2', '3', '2', '3'])
})

test.concurrent('a page whose store cannot be read is told that something may be gone', async (context) => {
  const { site, page } = await openStage(context, chromium.tabs)
  await page.evaluate((kept) => read('mine', kept), kept)
  await until(page, () => readers.mine!.stream.cursor)
  await site.hub.publish('numbers', { text: '1' })
  await until(page, () => gotOf('mine').length === 1)
  await visit(page, page.url())
  await site.hub.publish('numbers', { text: '2' })
  await page.evaluate((hasty) => {
    const load = () => Promise.reject(new Error('forbidden'))
    read('mine', { ...hasty, persist: { load, save: () => undefined } })
  }, hasty)
  await until(page, () => gotOf('mine').length === 2)
  await site.hub.publish('numbers', { text: '3' })
  await until(page, () => gotOf('mine').length === 3)
  expect(await page.evaluate(() => gotOf('mine'))).toEqual(['1', 'gap:unknown-id', '3'])
})

test.concurrent.for([
  ['fails once', 1, ['1', '2']],
  ['cannot be had', Infinity, ['1', 'gap:unknown-id', '3']],
] as const)('code of the store that %s costs no event in silence', async ([, failures, expected], context) => {
  const { site, page } = await openStage(context, chromium.tabs)
  await page.evaluate((kept) => read('mine', kept), kept)
  await until(page, () => readers.mine!.stream.cursor)
  await site.hub.publish('numbers', { text: '1' })
  await until(page, () => gotOf('mine').length === 1)
  let asked = 0
  await page.route('**/client/persistence.js', (route) => (asked++ < failures ? route.abort() : route.continue()))
  await visit(page, page.url())
  await site.hub.publish('numbers', { text: '2' })
  await page.evaluate((kept) => read('mine', kept), kept)
  await until(page, () => gotOf('mine').length === 2)
  if (failures > 1) await site.hub.publish('numbers', { text: '3' })
  await until(page, (count) => gotOf('mine').length === count, expected.length)
  expect(await page.evaluate(() => gotOf('mine'))).toEqual(expected)
})
