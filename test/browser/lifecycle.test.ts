import { expect, test } from 'vitest'
import { freeze, hide } from './support/hidden-tab.ts'
import { areIn, connectionsOf, each, hasty, recordsOf, until } from './support/readers.ts'
import { plainChromium } from './support/shared-chromium.ts'
import { cutInTurn, openBusyStage, openStage } from './support/stage.ts'

const chromium = plainChromium()

test('a hidden tab is left alone, and goes on reading', async (context) => {
  const { page, publisher } = await openBusyStage(context, chromium.context)
  await hide(page)
  await publisher.more(150)
  const published = await publisher.finish()
  expect(await recordsOf(page)).toEqual(each(published))
  expect(await connectionsOf(page)).toEqual(each(1))
})

test('a hidden tab whose connections are cut comes back although its timers are throttled', async (context) => {
  const stage = await openBusyStage(context, chromium.context)
  const { page } = stage
  await hide(page)
  await cutInTurn(stage, ['reset', 'reset', 'reset'])
  const published = await stage.publisher.finish()
  expect(await recordsOf(page)).toEqual(each(published))
  expect(await page.evaluate(() => document.visibilityState)).toBe('hidden')
})

test('a tab that is to pause while it is hidden lets go of the hub, and catches up when it is seen', async (context) => {
  const { page, publisher } = await openBusyStage(context, chromium.context, {}, { ...hasty, pauseWhenHidden: true })
  await publisher.more(50)
  await hide(page)
  await areIn(page, 'backoff')
  const paused = await page.evaluate(() => gotOf('fetch').length)
  await publisher.more(100)
  expect(await page.evaluate(() => gotOf('fetch').length)).toBe(paused)
  await page.bringToFront()
  const published = await publisher.finish()
  expect(await recordsOf(page)).toEqual(each(published))
})

test('a tab that was frozen has every event that it slept through as soon as it wakes', async (context) => {
  // So rare that the silence of a stream that died in its sleep would be noticed only after the test.
  const { page, publisher } = await openBusyStage(context, chromium.context, { heartbeatMs: 300_000 })
  await publisher.more(50)
  const thaw = await freeze(page)
  const frozen = await page.evaluate(() => gotOf('event-source').length)
  await publisher.more(150)
  expect(await page.evaluate(() => gotOf('event-source').length)).toBe(frozen)
  await thaw()
  const published = await publisher.finish()
  expect(await recordsOf(page)).toEqual(each(published))
})

test('a tab whose connections were cut while it was frozen resumes when it wakes', async (context) => {
  const { page, proxy, publisher } = await openBusyStage(context, chromium.context)
  await publisher.more(50)
  const thaw = await freeze(page)
  proxy.cutAll('reset')
  await publisher.more(100)
  await thaw()
  const published = await publisher.finish()
  expect(await recordsOf(page)).toEqual(each(published))
})

// So a frozen tab costs a native EventSource nothing, as long as the hub keeps what it slept through.
test('Chromium’s own EventSource gets when it wakes what came while it was frozen, and resumes if it was cut', async (context) => {
  const { site, proxy, page } = await openStage(context, chromium.context, {}, '/native')
  await page.evaluate(() => listen('/events/numbers'))
  await until(page, () => natives[0]!.told.includes('open'))
  const publish = (text: string) => site.hub.publish('numbers', { text })
  const wake = await freeze(page)
  await publish('asleep')
  await wake()
  await publish('awake')
  await until(page, () => natives[0]!.told.includes('awake'))
  const wakeAgain = await freeze(page)
  proxy.cutAll('reset')
  await publish('cut')
  await wakeAgain()
  await until(page, () => natives[0]!.told.includes('cut'))
  expect(await page.evaluate(() => natives[0]!.told)).toEqual(['open', 'asleep', 'awake', 'connecting', 'open', 'cut'])
  expect(site.requests.map(({ cursor }) => cursor === null)).toEqual([true, false])
})
