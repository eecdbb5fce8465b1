import { type Serving, serve } from 'rejoin'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launchChromium } from './chromium.ts'

let browser: Awaited<ReturnType<typeof launchChromium>>
let server: Serving

beforeAll(async () => {
  server = await serve({ port: 0 })
  browser = await launchChromium()
})

afterAll(async () => {
  await browser.close()
  await server.close()
})

test('Chromium’s own EventSource, as a transport, loses nothing and doubles nothing over three cuts', async () => {
  // The page's own policy forbids the evaluation by which a test looks into it.
  const page = await browser.newPage({ bypassCSP: true })
  await page.goto(server.url)
  await page.evaluate(`import('/client/index.js').then(({ connect }) => {
    window.got = []
    window.attempts = 0
    const stream = window.stream = connect('/events/native?tab=nativetest', { transports: ['event-source'], retryMs: 50 })
    stream.on('step', ({ data }) => window.got.push(data))
    stream.onSync(() => window.got.push('gap'))
    stream.onState(({ state }) => { if (state === 'connecting') window.attempts++ })
  })`)
  await page.waitForFunction('window.stream.cursor')
  for (let n = 0; n < 90; n += 1) {
    await server.hub.publish('native', { type: 'step', data: n })
    if (n % 30 === 15) await fetch(`${server.url}/playground/cut?tab=nativetest&ms=200`, { method: 'POST' })
    // Back again, so that the next cut meets a connection.
    if (n % 30 === 29) await page.waitForFunction(`window.got.length > ${n}`)
  }
  expect(await page.evaluate('window.got')).toEqual(Array.from({ length: 90 }, (_, n) => n))
  expect(await page.evaluate('window.attempts')).toBeGreaterThanOrEqual(4)
  await page.close()
})
