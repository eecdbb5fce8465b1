// Where readers of `rejoin serve` get the state when events are gone: `node examples/snapshot-webhook/main.js`, after
// `npm run build`.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { connect } from '@rejoin/client'

/** Your program: it knows the state of every channel. */
const shop = createServer(async (request, response) => {
  if (request.method === 'GET') return response.end(JSON.stringify({ path: request.url, price: 7 }))
  let body = ''
  for await (const piece of request) body += piece
  const [channel] = JSON.parse(body).channels
  return response.end(JSON.stringify({ channel, status: 'shipped' }))
})
await new Promise((listening) => shop.listen(0, '127.0.0.1', listening))
const shopUrl = `http://127.0.0.1:${shop.address().port}`

// Usually in rejoin.config.json. The hub asks the shop about orders; readers of prices load them from the shop.
const snapshots = { 'orders/*': { webhook: `${shopUrl}/state` }, 'prices/*': { url: `${shopUrl}/{channel}` } }
const program = fileURLToPath(new URL('../../packages/rejoin/bin/rejoin.js', import.meta.url))
const hub = spawn(process.execPath, [program, 'serve', '--port', '0', '--log', 'memory'], {
  env: { ...process.env, REJOIN_SNAPSHOTS: JSON.stringify(snapshots) },
  stdio: ['ignore', 'pipe', 'inherit'],
})
const hubUrl = await addressOf(hub)

const order = await syncOf(`${hubUrl}/events/orders/42`)
console.log('orders/42:', order.snapshot)

const price = await syncOf(`${hubUrl}/events/prices/tea`)
console.log('prices/tea:', await (await fetch(price.snapshotUrl)).json())

hub.kill()
await once(hub, 'exit')
shop.close()

/** What a reader is told whose cursor is from a log that is gone. */
async function syncOf(address) {
  const stream = connect(address, { from: 'an-id-of-last-year' })
  const sync = await new Promise((told) => {
    stream.onSync(told)
  })
  stream.close()
  return sync
}

/** The first line of the program's log that names its address. */
async function addressOf({ stdout }) {
  for await (const line of createInterface(stdout)) {
    const { url } = JSON.parse(line)
    if (url) return url
  }
}
