// A stream as a signal of Solid, which loses its connection and no event: `node examples/solid/main.js`, after
// `npm run build`.
import { createServer } from 'node:http'
import { connect } from '@rejoin/client'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
// For a page; without this path, Node gets what Solid has for servers, where nothing changes.
import { createEffect, createRoot, from, onCleanup } from 'solid-js/dist/solid.js'

const hub = await createHub({ log: memoryLog(), retryMs: 500 })
const server = createServer(nodeHandler(hub))
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
const url = `http://127.0.0.1:${server.address().port}/events/orders`

function useOrders() {
  const stream = connect(url)
  onCleanup(() => stream.close())
  return from((set) => {
    set(stream.getSnapshot())
    return stream.subscribe(() => set(stream.getSnapshot()))
  })
}

const leave = createRoot((dispose) => {
  const orders = useOrders()
  createEffect(() => void happens(orders()))
  return dispose
})

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
