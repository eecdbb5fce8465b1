// A publisher whose answers get lost, and whose events are there once: `node examples/publish-from-node/main.js`, after
// `npm run build`.
import { createServer } from 'node:http'
import { connect } from '@rejoin/client'
import { createPublisher } from '@rejoin/client/publisher'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'

const hub = await createHub({ log: memoryLog() })
const handle = nodeHandler(hub)
let posts = 0
const server = createServer((request, response) => {
  // Of every other publish the hub takes the event, and its answer never leaves.
  if (request.method === 'POST' && ++posts % 2 === 1) {
    response.end = () => {
      console.log('answer lost')
      return response.destroy()
    }
  }
  handle(request, response)
})
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
const address = `http://127.0.0.1:${server.address().port}`

const stream = connect(`${address}/events/orders/42`)
const arrived = new Promise((last) => {
  stream.on('step', ({ data }) => {
    console.log('  got', data.n)
    if (data.n === 5) last()
  })
})
await new Promise((connected) => stream.onState(({ state }) => state === 'connected' && connected()))

const publisher = createPublisher(`${address}/publish`)
for (let n = 1; n <= 5; n += 1) await publisher.publish('orders/42', { type: 'step', data: { n } })

await arrived
stream.close()
await hub.close()
server.close()
