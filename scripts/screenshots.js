// Takes docs/images/event-stream.png: a stream in Chromium's DevTools, cut and resumed; and docs/images/order-board.png: the
// example of that name during a cut. Run it with `node scripts/screenshots.js`, after `npm run build`, when a picture no longer
// shows what there is to see.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { chromium } from 'playwright-core'
import { executableOf, services } from './services.js'

const picture = fileURLToPath(new URL('../docs/images/event-stream.png', import.meta.url))
const boardPicture = fileURLToPath(new URL('../docs/images/order-board.png', import.meta.url))
const channel = 'orders/42'

const hub = await createHub({ log: memoryLog(), retryMs: 500 })
const site = createServer(nodeHandler(hub)).listen(0, '127.0.0.1')
await once(site, 'listening')
const address = site.address()
const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`

const debugPort = 9222
const [executablePath] = services
  .filter(({ name }) => name === 'Chromium')
  .flatMap((service) => executableOf(service) ?? [])
if (executablePath === undefined)
  throw new Error('No Chromium on the PATH. To add it: sudo apt-get install -y chromium')
const browser = await chromium.launch({
  executablePath,
  args: [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    `--remote-debugging-port=${debugPort}`,
    '--remote-allow-origins=*',
  ],
})
try {
  const page = await browser.newPage()
  await page.goto(`${url}/nothing-here`)
  const tools = await openDevTools()
  await page.evaluate((path) => void new EventSource(path), `/events/${channel}`)
  await until(() => hub.readers(channel) === 1)
  await hub.publish(channel, { type: 'packed', data: { parcel: 7 } })
  await hub.publish(channel, { type: 'shipped', data: { parcel: 7 } })
  await tools.locator('td.name-column', { hasText: '42' }).first().click()
  await tools.getByText('EventStream').first().click()
  await tools.getByText('shipped').first().waitFor()
  for (const { connection } of hub.admin.connections()) hub.admin.disconnectHere(connection)
  // While the page is away.
  await hub.publish(channel, { type: 'delivered', data: { parcel: 7 } })
  await until(() => hub.readers(channel) === 1)
  await tools.locator('td.name-column', { hasText: '42' }).nth(1).click()
  await tools.getByText('EventStream').first().click()
  await tools.getByText('delivered').first().waitFor()
  await tools.screenshot({ path: picture })
  console.log(picture)
  await takeBoard()
  console.log(boardPicture)
} finally {
  await browser.close()
  await hub.close()
  site.close()
}

/** The board of orders while its connection is cut. */
async function takeBoard() {
  const program = fileURLToPath(new URL('../examples/order-board/main.js', import.meta.url))
  const board = spawn(process.execPath, [program], { env: { ...process.env, PORT: '0' } })
  try {
    const [line] = await once(board.stdout, 'data')
    const page = await browser.newPage({ viewport: { width: 960, height: 520 } })
    await page.goto(/http:\S+/.exec(String(line))?.[0] ?? '')
    await page.getByRole('img', { name: 'Live' }).waitFor()
    await page.getByRole('button', { name: 'Cut' }).click()
    await page.getByText(/Reconnecting in [3-5] s…/).waitFor()
    await page.screenshot({ path: boardPicture })
  } finally {
    board.kill()
  }
}

/** DevTools are a page themselves, which Chromium serves on its debugging port. */
async function openDevTools() {
  const answer = await fetch(`http://127.0.0.1:${debugPort}/json/list`)
  const targets = /** @type {{ id: string, url: string }[]} */ (await answer.json())
  const id = targets.find((target) => target.url.startsWith(url))?.id
  const tools = await browser.newPage({ viewport: { width: 1000, height: 340 } })
  const socket = `127.0.0.1:${debugPort}/devtools/page/${id}`
  await tools.goto(`http://127.0.0.1:${debugPort}/devtools/devtools_app.html?ws=${socket}&panel=network`)
  await tools.getByText('Disable cache').first().waitFor()
  return tools
}

/** @param {() => boolean} holds */
async function until(holds) {
  for (let tries = 0; tries < 100; tries += 1) {
    if (holds()) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error('The page did not read the stream within ten seconds.')
}
