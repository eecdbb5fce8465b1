import type { Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { type BundledPage, bundlePage } from './support/bundled-page.ts'
import { startPublishing } from './support/publisher.ts'
import { hasty, until, visit } from './support/readers.ts'
import { sharedChromium } from './support/shared-chromium.ts'
import { openStage } from './support/stage.ts'

// What handlers have done with events is written to the storage of the tab, as a page would that wants to keep it.

const chromium = sharedChromium()
let bundle: BundledPage

beforeAll(async () => {
  bundle = await bundlePage('components')
}, 60_000)

const handlers = ['a handler', 'an async handler', 'a handler in a page that is not painted'] as const
type Handler = (typeof handlers)[number]
const cases = ['React', 'Vue', 'Redux'].flatMap((name) => handlers.map((handler) => [name, handler] as const))

test.concurrent.for(cases)(
  '%s, %s: a page that keeps its cursor and is loaded again and again misses no event',
  async ([name, handler], context) => {
    const intercept = bundle.serve
    const { page, site } = await openStage(context, chromium.tabs, { intercept }, '/components')
    await handleEvents(page, name, handler)
    await until(page, () => sessionStorage.cursor)
    const publisher = startPublishing(site)
    for (let reload = 1; reload <= 5; reload++) {
      await publisher.more(20 + 7 * reload)
      await until(page, (reload) => sessionStorage.handled.split(' ').length > reload, reload)
      await visit(page, page.url())
      await handleEvents(page, name, handler)
    }
    const published = await publisher.finish()
    await until(page, () => sessionStorage.handled.endsWith('end'))
    const handled = await page.evaluate(() => sessionStorage.handled.split(' ') as string[])
    console.log(`${name}, ${handler}: ${published.length} events, ${handled.length - published.length} of them twice`)
    expect(published.filter((number) => !handled.includes(number))).toEqual([])
  },
)

async function handleEvents(page: Page, name: string, handler: Handler): Promise<void> {
  await page.evaluate(
    ([name, handler, hasty]) => {
      if (handler.includes('painted')) globalThis.requestAnimationFrame = () => 0
      const persist = {
        load: () => sessionStorage.getItem('cursor'),
        save: (cursor: string | null) => sessionStorage.setItem('cursor', cursor ?? ''),
      }
      sessionStorage.handled ??= ''
      bindings[name]!({ ...hasty, persist }, () => undefined, handler.includes('async') ? handleLater : handle)

      function handle({ data }: { data: unknown }): void {
        sessionStorage.handled = `${sessionStorage.handled} ${data}`.trimStart()
      }

      async function handleLater(event: { data: unknown }): Promise<void> {
        await new Promise((resolve) => setTimeout(resolve, 100))
        handle(event)
      }
    },
    [name, handler, hasty] as const,
  )
}
