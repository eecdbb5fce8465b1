// A page loads its state and then follows a stream. What happens in between is lost, unless the state comes with a cursor:
// `node examples/load-then-follow/main.js`, after `npm run build`.
import { connect } from '@rejoin/client'
import { createHub } from '@rejoin/hub'
import { expressHandler } from '@rejoin/hub/express'
import { memoryLog } from '@rejoin/hub/memory'
import express from 'express'

const order = { status: 'paid' }
const hub = await createHub({ log: memoryLog() })
const app = express()

app.get('/orders/42', async (_request, response) => {
  // Before the state is read: whatever is not in the state comes after this cursor.
  const cursor = await hub.cursor('orders/42')
  response.json({ cursor, order })
})
app.use(expressHandler(hub))
const server = app.listen(0, '127.0.0.1')
await new Promise((listening) => server.once('listening', listening))
const address = `http://127.0.0.1:${server.address().port}`

/** The state first, then the event: what a page loads is at least as new as its cursor. */
async function change(status) {
  order.status = status
  await hub.publish('orders/42', { type: 'changed', data: { status } })
}

/** Loads, and follows when another change has happened. Prints what the page shows when the last change has arrived. */
async function load(name, { useCursor, meanwhile, last }) {
  const { cursor, order: shown } = await (await fetch(`${address}/orders/42`)).json()
  const seen = [shown.status]
  await change(meanwhile)
  const stream = connect(`${address}/events/orders/42`, { from: useCursor ? cursor : null })
  await new Promise((done) => {
    stream.onState(({ state }) => state === 'connected' && seen.length === 1 && void change(last))
    stream.on('changed', ({ data: { status } }) => {
      seen.push(status)
      if (status === last) done()
    })
  })
  stream.close()
  console.log(`${name}: ${seen.join(', ')}`)
}

await load('without the cursor', { useCursor: false, meanwhile: 'packed', last: 'shipped' })
await load('with the cursor', { useCursor: true, meanwhile: 'returned', last: 'refunded' })
await hub.close()
server.close()
