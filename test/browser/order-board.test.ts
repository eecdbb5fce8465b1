import type { Request } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { startCommand } from '../support/command.ts'
import { root } from '../support/paths.ts'
import { expectNoSidewaysScroll, press, seriousBarriers } from './support/page-check.ts'
import { sharedChromium } from './support/shared-chromium.ts'

const chromium = sharedChromium()

test.each([
  ['light', 1280],
  ['dark', 390],
] as const)('the order board does not move when the banner comes: %s, %i px wide', async (colorScheme, width) => {
  const address = await startBoard()
  const page = await chromium.browser.newPage({ viewport: { width, height: 844 }, colorScheme })
  onTestFinished(() => page.close())
  await page.goto(address)
  await page.getByRole('img', { name: 'Live' }).waitFor()
  const columns = page.locator('.columns')
  const before = await columns.boundingBox()
  await press(page, 'Cut the connection for 5 s')
  await page.getByText(/^Reconnecting in \d s…$/).waitFor()
  expect((await columns.boundingBox())?.y).toBe(before?.y)
  await expectNoSidewaysScroll(page)
  expect(await seriousBarriers(page)).toEqual([])
})

test('two tabs of the order board read through one connection', async () => {
  const address = await startBoard()
  const streams = new Set<Request>()
  for (let tab = 0; tab < 2; tab += 1) {
    const page = await chromium.tabs.newPage()
    onTestFinished(() => page.close())
    page.on('request', (request) => request.url().includes('/events/') && streams.add(request))
    for (const over of ['requestfinished', 'requestfailed'] as const)
      page.on(over as 'requestfinished', (request) => streams.delete(request))
    await page.goto(address)
    await page.getByRole('img', { name: 'Live' }).waitFor()
    await press(page, 'Place an order')
    await page.getByText(`A-10${8 + tab}`).waitFor()
  }
  // A tab that has loaded an older state reads what it lacks by itself, and then lets go.
  await expect.poll(() => streams.size).toBe(1)
})

test('the order board shows a countdown during a cut, and then everything that happened meanwhile', async () => {
  const address = await startBoard()
  const page = await chromium.tabs.newPage()
  onTestFinished(() => page.close())
  await page.goto(address)
  await page.getByRole('img', { name: 'Live' }).waitFor()
  expect(await seriousBarriers(page)).toEqual([])
  await press(page, 'Place an order')
  await page.getByText('A-108').waitFor()

  await press(page, 'Cut the connection for 5 s')
  await page.getByText(/^Reconnecting in \d s…$/).waitFor()
  await press(page, 'Place an order')
  await page.getByRole('img', { name: 'Live' }).waitFor()
  await page.getByText('A-109').waitFor()
  expect(await page.getByRole('listitem').count()).toBe(9)
})

async function startBoard(): Promise<string> {
  const program = startCommand('env', ['PORT=0', process.execPath, 'examples/order-board/main.js'], root)
  onTestFinished(async () => void (await program.stop()))
  const [address] = await program.prints(/http:\/\/127\.0\.0\.1:\d+/)
  return address
}
