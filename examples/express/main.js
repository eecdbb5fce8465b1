// A hub inside an Express application: `node examples/express/main.js`, after `npm run build`, and open what it prints.
import { createHub } from '@rejoin/hub'
import { subscribe } from '@rejoin/hub/express'
import { memoryLog } from '@rejoin/hub/memory'
import express from 'express'

const hub = await createHub({ log: memoryLog() }) // lmdbLog('./data') of '@rejoin/hub/lmdb' survives a restart
const app = express()

app.get('/events/*channel', subscribe(hub))

app.post('/orders/:id/ship', async (request, response) => {
  const { id } = await hub.publish(`orders/${request.params.id}`, { type: 'shipped', data: { at: Date.now() } })
  response.json({ id })
})

// A browser's own EventSource sends the last id by itself when it comes back.
app.get('/', (_request, response) => {
  response.send(`<!doctype html><title>Order 42</title>
<button onclick="fetch('/orders/42/ship', { method: 'POST' })">Ship order 42</button>
<ul id="list"></ul>
<script>
  new EventSource('/events/orders/42').addEventListener('shipped', ({ data }) => {
    list.append(Object.assign(document.createElement('li'), { textContent: data }))
  })
</script>`)
})

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', (error) => {
  if (error) throw error
  const { port } = server.address()
  console.log(`Open http://127.0.0.1:${port}, press the button, and pull the plug in between. Ctrl-C ends it.`)
})

process.once('SIGINT', async () => {
  // Readers are told to come back, and the log is closed, before the server goes.
  await hub.drain({ withinMs: 500 })
  await hub.close()
  server.close()
})
