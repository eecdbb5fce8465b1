// A stream as a store of Svelte, which loses its connection and no event: `node examples/svelte/main.js`, after
// `npm run build`. A component would read it as `$orders`.
import { createServer } from 'node:http'
import { connect } from '@rejoin/client'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { readable } from 'svelte/store'

const hub = await createHub({ log: memoryLog(), retryMs: 500 })
const server = createServer(nodeHandler(hub))
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
const url = `http://127.0.0.1:${server.address().port}/events/orders`

const orders = readable(null, (set) => {
  const stream = connect(url)
  set(stream.getSnapshot())
  stream.subscribe(() => set(stream.getSnapshot()))
  return () => stream.close()
})

const leave = orders.subscribe((snapshot) => void happens(snapshot))

async function end() {
  leave()
  await hub.close()
  server.close()
}

/** Publishes an order now and then, and cuts the connection once; a page would do none of this. */
let published = 0
async function happens({ state, events }) {
  console.log(state, events.map(({ data }) => data).join(' '))
  if (state !== 'connected' || events.length < published) return
  published += 1
  if (published === 3) server.closeAllConnections()
  if (published < 6) await hub.publish('orders', { type: 'placed', data: published })
  else await end()
}
