// A hub in Bun, as the guide has it.
import { fetchHandler } from '@rejoin/hub/fetch'
import { openTalkingHub } from './talking-hub.js'

const hub = await openTalkingHub(process.env)
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  idleTimeout: 0,
  fetch: fetchHandler(hub, { ip: (request, server) => server.requestIP(request)?.address }),
})
console.log(JSON.stringify({ kind: 'listening', port: server.port, version: Bun.version }))
