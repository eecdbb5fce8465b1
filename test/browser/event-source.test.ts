import { EventSource } from '@rejoin/client/event-source'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { open, type Rule, rules } from './page/event-source-rules.js'
import { type Scripts, scriptedAnswers } from './support/scripted-answers.ts'
import { sharedChromium } from './support/shared-chromium.ts'
import { openSite, type Site } from './support/site.ts'

// Every rule is played by our class in Node and in Chromium. Chromium's own class plays it too: a rule that the browser does
// not follow has to say why.

const chromium = sharedChromium()
const stays = { stays: true, text: 'data: end\n\n' }
const many = Array.from({ length: 50_000 }, (_, number) => `data: ${number}\n\n`).join('')
let site: Site
let page: Page

beforeAll(async () => {
  const readers = ['node', 'page', 'native']
  const scripts = rules.flatMap(({ answers }, index) => readers.map((reader) => [`/${reader}/${index}`, answers]))
  const leaving = readers.map((reader) => [`/${reader}/leaving`, [{ text: 'retry: 5\nid: 7\n\n' }, stays]])
  const all: Scripts = { ...Object.fromEntries([...scripts, ...leaving]), '/moved': [stays], '/many': [{ text: many }] }
  site = await openSite(scriptedAnswers(all))
  page = await chromium.tabs.newPage()
  await page.goto(`http://127.0.0.1:${site.port}/strict`)
  await page.waitForFunction(() => 'playRule' in globalThis)
})
afterAll(() => site.close())

describe.each(['in Node', 'in Chromium', 'of Chromium itself'])('the strict EventSource %s', (where) => {
  test.each(rules.map((rule, index) => [rule.name, rule, index] as const))('%s', async (_, rule, index) => {
    const reader = where === 'in Node' ? 'node' : where === 'in Chromium' ? 'page' : 'native'
    const url = `http://127.0.0.1:${site.port}/${reader}/${index}`
    const told =
      reader === 'node'
        ? await (rule.play ?? open)({ EventSource: EventSource as never, url })
        : await page.evaluate(([url, index, reader]) => playRule(url, index, reader === 'native'), [
            url,
            index,
            reader,
          ] as const)
    const asked = site.requests.filter((request) => request.url === `/${reader}/${index}`)
    const cursors = asked.map(({ cursor }) => cursor && Buffer.from(cursor, 'latin1').toString())
    if (reader === 'native' && rule.differs) {
      expect([told, cursors], rule.differs).not.toEqual([toldBy(rule), rule.cursors ?? cursors])
    } else {
      expect([told, cursors]).toEqual([toldBy(rule), rule.cursors ?? cursors])
    }
  })
})

test('an empty address is that of the page, and a relative one stands beside it', async () => {
  const urls = await page.evaluate(() => ['', 'events/a', '//other.invalid'].map((url) => openStrict(url)))
  const origin = `http://127.0.0.1:${site.port}`
  expect(urls).toEqual([`${origin}/strict`, `${origin}/events/a`, 'http://other.invalid/'])
})

test('50,000 events arrive in order and without a pause', async () => {
  const numbers = await page.evaluate((url) => countStrict(url), `http://127.0.0.1:${site.port}/many`)
  expect(numbers).toEqual(Array.from({ length: 50_000 }, (_, number) => String(number)))
})

function toldBy({ told, play }: Rule): readonly string[] {
  return play || told[0] === 'closed' ? told : ['open', ...told, 'end']
}

declare global {
  /** Opens and closes it, and returns its address. */
  var openStrict: (url: string) => string
  /** The data of all events up to the end of the stream. */
  var countStrict: (url: string) => Promise<string[]>
  /** Plays the rule with this index with our class, or with that of the browser. */
  var playRule: (url: string, index: number, isNative: boolean) => Promise<string[]>
}
