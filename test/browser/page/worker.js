import { connect } from '/resolved/index.js'

/**
 * Reads in a worker, of one page or shared by several, and posts what it gets to the pages. The worker's name is the
 * transport.
 */
const kept = []
const pages = globalThis.postMessage ? [globalThis] : []

globalThis.onconnect = ({ ports: [page] }) => {
  for (const text of kept) page.postMessage(text)
  pages.push(page)
}

const stream = connect('/events/numbers', { parse: 'text', transports: [name], retryMs: 100, maxRetryMs: 1000 })
for (const type of ['message', 'step']) stream.on(type, ({ data }) => post(data))
stream.onSync(({ reason }) => post(`gap:${reason}`))
// Posted once: from here on the reader misses nothing.
stream.onState(({ state }) => state === 'connected' && !kept.includes('open') && post('open'))

function post(text) {
  kept.push(text)
  for (const page of pages) page.postMessage(text)
}
