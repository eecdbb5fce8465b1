// What an operator needs, in an Express application of your own: `node examples/express-operations/main.js`, after `npm run build`.
import { createHub } from '@rejoin/hub'
import { expressHandler } from '@rejoin/hub/express'
import { memoryLog } from '@rejoin/hub/memory'
import { createLogLines, createMaintenance, reportsHandler, sseStateHandler } from '@rejoin/hub/operations'
import express from 'express'

const hub = await createHub({ log: memoryLog() })
const app = express()

// Your logger takes the place of the console: `(line) => logger[line.level](line)`.
const lines = createLogLines((line) => console.log(JSON.stringify(line)))
lines.watch(hub)

const maintenance = createMaintenance(hub)
app.use(maintenance.handler) // before the hub
app.use(expressHandler(hub))
app.post('/log', reportsHandler(hub, lines.reconnected))

// Only for operators. Put the guard of your application here.
const admin = express.Router()
admin.use((request, response, next) => {
  if (request.get('authorization') === `Bearer ${process.env.ADMIN_TOKEN ?? 'change me'}`) next()
  else response.sendStatus(404)
})
admin.get('/debug/sse-state', sseStateHandler(hub))
admin.post('/maintenance/:state', (request, response) => {
  if (request.params.state === 'on') maintenance.begin({ retryAfterMs: 120_000 })
  else maintenance.end()
  response.json({ on: maintenance.isOn })
})
app.use('/admin', admin)

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', (error) => {
  if (error) throw error
  console.log(`Read http://127.0.0.1:${server.address().port}/events/demo with curl -N. Ctrl-C ends it.`)
})

process.once('SIGINT', async () => {
  await hub.drain({ withinMs: 500 })
  await hub.close()
  lines.flush()
  server.close()
})
