// A board of orders that stays true through cuts, in React: `node examples/order-board/main.js`, after `npm run build`.
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { build } from 'vite'

const goods = ['Tea, 200 g', 'Blue mug', 'Honey', 'Linen towel', 'Teapot', 'Spoons, six']
const next = { placed: 'packed', packed: 'shipped' }

/** @type {Record<string, import('./events.ts').Order>} */
const orders = {}
let placed = 0
let cutUntil = 0

const hub = await createHub({ log: memoryLog(), retryMs: 500, heartbeatMs: 5000, snapshot: () => orders })

/** The state first, then the event: what a page loads is at least as new as its cursor. */
async function placeOrder() {
  placed += 1
  const order = { id: `A-${100 + placed}`, what: goods[placed % goods.length], status: 'placed' }
  orders[order.id] = order
  await hub.publish('orders', { type: 'placed', data: order })
}

/** The oldest order that can move goes one column on. */
async function moveOrder() {
  const order = Object.values(orders).find(({ status }) => status in next)
  if (!order) return
  order.status = next[order.status]
  await hub.publish('orders', { type: 'moved', data: { id: order.id, status: order.status } })
}

const files = await buildPage()
const readStream = nodeHandler(hub)
const routes = {
  'GET /orders': async (response) => {
    const cursor = await hub.cursor('orders')
    response.end(JSON.stringify({ cursor, orders }))
  },
  'POST /orders': async (response) => {
    await placeOrder()
    response.writeHead(204).end()
  },
  'POST /cut': (response) => {
    cutUntil = Date.now() + 5000
    for (const { connection } of hub.admin.connections()) hub.admin.disconnectHere(connection)
    response.writeHead(204).end()
  },
}

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://board')
  const route = routes[`${request.method} ${pathname}`]
  const file = files.get(pathname === '/' ? '/index.html' : pathname)
  if (route) return route(response)
  if (file) return response.setHeader('Content-Type', typeOf(pathname)).end(file)
  if (Date.now() < cutUntil) return response.writeHead(503, { 'Retry-After': '5' }).end()
  readStream(request, response)
})

/** The page and its parts, by path. */
async function buildPage() {
  const root = fileURLToPath(new URL('page', import.meta.url))
  const { output } = await build({
    ...{ root, configFile: false, logLevel: 'warn' },
    build: { write: false, target: 'es2023', modulePreload: false },
  })
  return new Map(output.map((file) => [`/${file.fileName}`, file.type === 'chunk' ? file.code : file.source]))
}

function typeOf(path) {
  return path.endsWith('.js') ? 'text/javascript' : path.endsWith('.css') ? 'text/css' : 'text/html'
}

for (let count = 0; count < 7; count += 1) await placeOrder()
for (let count = 0; count < 4; count += 1) await moveOrder()
setInterval(moveOrder, 2000)

server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`The board: http://127.0.0.1:${server.address().port}`)
})
