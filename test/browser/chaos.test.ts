import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chaosOf } from '@rejoin/client/testing'
import { beforeAll, expect, type TestContext, test } from 'vitest'
import { startCommand } from '../support/command.ts'
import { program, root } from '../support/paths.ts'
import { type BundledPage, bundlePage } from './support/bundled-page.ts'
import { press } from './support/page-check.ts'
import { sharedChromium } from './support/shared-chromium.ts'

// What an application's own tests do in a browser: a page of theirs, and `rejoin serve --chaos`.

const chromium = sharedChromium()
let bundle: BundledPage

beforeAll(async () => {
  bundle = await bundlePage('bindings')
}, 60_000)

/** A page with the React binding, on a server of its own, that reads numbers from a program with chaos. */
async function open({ onTestFinished }: TestContext, query = '') {
  const flags = ['--chaos', '--port', '0', '--retry-ms', '500', '--heartbeat-ms', '1000']
  const served = startCommand(process.execPath, [program, 'serve', ...flags], root)
  onTestFinished(async () => void (await served.stop()))
  const [hub] = await served.prints(/http:\/\/127\.0\.0\.1:\d+/)
  const site = createServer(
    (request, response) => void (bundle.serve(request, response) || response.writeHead(404).end()),
  )
  site.listen(0, '127.0.0.1')
  onTestFinished(() => void site.close().closeAllConnections())
  await once(site, 'listening')
  const page = await chromium.tabs.newPage()
  onTestFinished(() => page.close())
  await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/bindings${query}`)
  await page.evaluate((url) => setSource({ url }), `${hub}/events/numbers`)
  await page.getByRole('img', { name: 'Live' }).waitFor()
  const publish = async (number: number) => {
    const headers = { 'Content-Type': 'application/json' }
    const { status } = await fetch(`${hub}/publish/numbers`, { method: 'POST', body: `${number}`, headers })
    expect(status).toBe(201)
  }
  await publish(1)
  await page.getByText('1 events, in order').waitFor()
  return { page, publish, chaos: chaosOf(hub), status: page.locator('.rejoin-status') }
}

test.concurrent('a page shows the banner when it is cut, and then catches up', async (context) => {
  const { page, publish, chaos, status } = await open(context)
  await chaos.cut()
  await status.getByText(/^Reconnecting in \d+ s…$/).waitFor()
  await publish(2)
  await chaos.heal()
  await page.getByText('2 events, in order').waitFor()
  await page.getByRole('img', { name: 'Live' }).waitFor()
})

test.concurrent('a page misses nothing when its hub is restarted', async (context) => {
  const { page, publish, chaos } = await open(context)
  await chaos.restart()
  await publish(2)
  await page.getByText('2 events, in order').waitFor()
})

test.concurrent('a page is told when events expire while it is disconnected', async (context) => {
  const { page, publish, chaos, status } = await open(context)
  const told = page.waitForEvent('console', (message) => message.text().includes('onSync'))
  await chaos.cut()
  await status
    .getByText(/^Reconnecting/)
    .first()
    .waitFor()
  await publish(2)
  await chaos.expire()
  await chaos.heal()
  await told
  await publish(3)
  await page.getByText('2 events, out of order').waitFor()
})

test.concurrent('a page whose rights were taken back asks for a login, and then goes on', async (context) => {
  const { page, publish, chaos, status } = await open(context, '?token')
  await chaos.revoke()
  await status.getByText('Signed out').first().waitFor()
  await publish(2)
  await press(page, 'Sign in')
  await page.getByText('2 events, in order').waitFor()
})

test.concurrent('a page says that it may be out of date when nothing gets through, and recovers', async (context) => {
  const { page, publish, chaos, status } = await open(context)
  await chaos.slow(0)
  await status.getByText('May be out of date').first().waitFor()
  await publish(2)
  await chaos.heal()
  await page.getByText('2 events, in order').waitFor()
  await page.getByRole('img', { name: 'Live' }).waitFor()
})
