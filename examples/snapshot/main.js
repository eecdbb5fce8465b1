// A reader that was away for too long is told so, and given the state instead: `node examples/snapshot/main.js`, after
// `npm run build`.
import { createServer } from 'node:http'
import { connect } from '@rejoin/client'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'

/** What the events are about: how many of each fruit there are. */
const stock = { apples: 0, pears: 0 }

const hub = await createHub({
  // So little that ten changes are too many to come back for; a usual window holds thousands.
  log: memoryLog({ window: { maxEvents: 3 } }),
  hotBytes: 1,
  snapshot: () => structuredClone(stock),
})
const server = createServer(nodeHandler(hub))
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
const address = `http://127.0.0.1:${server.address().port}/events/stock`

/** The state first, then the event: a snapshot that is taken for an event is at least as new as that. */
async function add(fruit) {
  stock[fruit] += 1
  await hub.publish('stock', { type: 'stocked', data: { fruit, count: stock[fruit] } })
}

/** Reads until it knows as much as there is, prints what it is told, and gives the place up to which it has read. */
async function read(shown, from) {
  const stream = connect(address, { from })
  await new Promise((done) => {
    const isUpToDate = () => JSON.stringify(shown) === JSON.stringify(stock) && done()
    stream.on('stocked', ({ data: { fruit, count } }) => {
      console.log('  event', fruit, count)
      // A count and not a difference, so that an event which the snapshot has already does no harm.
      shown[fruit] = count
      isUpToDate()
    })
    stream.onSync(({ reason, snapshot }) => {
      console.log(`  sync-required (${reason})`, snapshot)
      Object.assign(shown, snapshot)
      isUpToDate()
    })
  })
  stream.close()
  return stream.cursor
}

const shown = { apples: 0, pears: 0 }

console.log('reading')
for (const fruit of ['apples', 'pears']) await add(fruit)
let cursor = await read(shown, 'earliest')

console.log('away for two changes, which the window holds')
for (const fruit of ['apples', 'pears']) await add(fruit)
cursor = await read(shown, cursor)

console.log('away for ten, which it does not')
for (let n = 0; n < 5; n += 1) for (const fruit of ['apples', 'pears']) await add(fruit)
await read(shown, cursor)

console.log('the reader has', shown)
await hub.close()
server.close()
