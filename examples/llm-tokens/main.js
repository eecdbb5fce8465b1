// The answer of a model as a channel: it survives cuts, can be joined late, ends, and is not written for nobody.
// `node examples/llm-tokens/main.js`, after `npm run build`.
import { createServer } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { connect } from '@rejoin/client'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'

const hub = await createHub({ log: memoryLog(), retryMs: 500 })
const server = createServer(nodeHandler(hub))
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
const address = `http://127.0.0.1:${server.address().port}/events`

/** Stands for a model. */
async function* model(prompt) {
  for (const word of `You asked: ${prompt} And this is what can be said about it, one word after the other.`.split(
    ' ',
  )) {
    await setTimeout(60)
    yield `${word} `
  }
}

/** Writes an answer to its channel, as long as somebody reads. Whoever was cut off has three seconds to come back. */
async function answer(channel, prompt, patienceMs = 3000) {
  let readAt = Date.now()
  for await (const token of model(prompt)) {
    await hub.publish(channel, { type: 'token', data: token })
    if (hub.readers(channel) > 0) readAt = Date.now()
    if (Date.now() - readAt > patienceMs) {
      console.log(`nobody reads ${channel}: stopped`)
      break
    }
  }
  await hub.end(channel)
}

/** Reads an answer from its first word, whenever that was written. */
function read(channel, onToken) {
  let text = ''
  const stream = connect(`${address}/${channel}`, { from: 'earliest' })
  stream.on('token', ({ data }) => {
    text += data
    onToken?.(text, stream)
  })
  return new Promise((ended) => {
    stream.onState(({ state, closeReason }) => state === 'closed' && ended(`${closeReason}: ${text.trim()}`))
  })
}

// One reader is cut off in the middle; another comes when half of it is written. Both get all of it, and the end.
let joined
let isCut = false
const first = read('answers/1', (text) => {
  joined ??= text.split(' ').length > 8 ? read('answers/1') : undefined
  if (text.split(' ').length > 5 && !isCut) {
    isCut = true
    console.log('cut')
    server.closeAllConnections()
  }
})
await answer('answers/1', 'does it resume?')
console.log('first  ', await first)
console.log('joined ', await joined)
console.log('after  ', await read('answers/1'))

// The only reader of this one leaves, and the model is not paid for what nobody wants.
const leaves = read('answers/2', (text, stream) => text.split(' ').length > 3 && stream.close())
while (hub.readers('answers/2') === 0) await setTimeout(10)
await answer('answers/2', 'and if I leave?', 200)
console.log('left   ', await leaves)

await hub.close()
server.close()
