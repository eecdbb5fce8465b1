import { connect } from '/client/index.js'

/** Opens an `EventSource` and a stream of ours, each on a path of its own, and writes down what both hear. */
globalThis.readBoth = function readBoth(url, types, options, isTimed) {
  const native = new EventSource(`${url}/native`)
  globalThis.heard = { native: [], ours: [], source: native }
  globalThis.ourAnswers = 0
  const countingFetch = async (...request) => {
    const response = await fetch(...request)
    ourAnswers += 1
    return response
  }
  const given = { ...options, parse: 'text', fetch: countingFetch, ...(isTimed && { clock }) }
  const stream = connect(`${url}/ours`, given)
  globalThis.ourStream = stream
  for (const type of types) {
    native.addEventListener(type, (event) => {
      // The browser's own events have no data.
      if (event instanceof MessageEvent) heard.native.push(`${type} ${event.data}`)
    })
    stream.on(type, ({ data }) => void heard.ours.push(`${type} ${data}`))
  }
}
