// The services of a network as events, across a cut: `node examples/mdns/main.js`, after `npm run build`. The network is
// played by this program; leave `network` out, and it is yours.
import { createServer } from 'node:http'
import { connect } from '@rejoin/client'
import { createMdns } from '@rejoin/mdns'

let network
const mdns = await createMdns({
  network: async (listener) => {
    network = listener
    return { ask: () => undefined, close: async () => undefined }
  },
})
const server = createServer(mdns.handler)
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))

/** What a machine says when it has a service: at this port, or with a `ttl` of 0 no longer. */
function announce(name, port, ttl = 120) {
  const service = `${name}._http._tcp.local`
  network.answered([
    { type: 'PTR', name: '_http._tcp.local', ttl, flush: false, data: service },
    { type: 'SRV', name: service, ttl, flush: true, data: { target: `${name}.local`, port } },
    { type: 'TXT', name: service, ttl, flush: true, data: [] },
    { type: 'A', name: `${name}.local`, ttl, flush: true, data: '192.168.1.7' },
  ])
}

const stream = connect(`http://127.0.0.1:${server.address().port}/v1/mdns/events?type=_http._tcp&idle_for=0`)
stream.on('resolved', ({ data: { name, ip, port } }) => console.log(`${name} is at ${ip}:${port}`))
stream.on('removed', ({ data: { name } }) => console.log(`${name} is gone`))
await new Promise((connected) => stream.onState(({ state }) => state === 'connected' && connected()))

announce('nas', 80)
announce('nas', 80)
await new Promise((seen) => stream.on('resolved', seen))

console.log('cut')
server.closeAllConnections()
announce('nas', 8080)
announce('nas', 8080, 0)
await new Promise((seen) => stream.on('removed', seen))

stream.close()
server.close()
await mdns.close()
