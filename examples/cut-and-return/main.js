// A stream that loses its connection and loses nothing: `node examples/cut-and-return/main.js`, after `npm run build`.
import { createServer } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { connect } from '@rejoin/client'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'

const hub = await createHub({ log: memoryLog(), retryMs: 500 })
const server = createServer(nodeHandler(hub))
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))

const stream = connect(`http://127.0.0.1:${server.address().port}/events/orders/42`)
const arrived = new Promise((last) => {
  stream.on('step', ({ data }) => {
    console.log('  got', data.n)
    if (data.n === 12) last()
  })
})
const connected = new Promise((first) => {
  stream.onState(({ state }) => {
    console.log(state)
    if (state === 'connected') first()
  })
})

// A stream without a cursor begins with what is published next.
await connected
for (let n = 1; n <= 12; n += 1) {
  await setTimeout(250)
  if (n === 5) {
    console.log('cut')
    server.closeAllConnections()
  }
  await hub.publish('orders/42', { type: 'step', data: { n } })
}

await arrived
stream.close()
await hub.close()
server.close()
