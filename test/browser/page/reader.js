import { connect } from '/client/index.js'

/**
 * Opens a stream and writes down what it gives. What it got is kept in `sessionStorage`, as an application that keeps its
 * cursor there would keep what it made of its events. Each has a key of its own: one text that grows would be written
 * anew for each event, and a long test would end up measuring that.
 */
globalThis.read = function read(name, options) {
  const reader = { states: [] }
  let count = gotOf(name).length
  const write = (text) => sessionStorage.setItem(`${name} ${count++}`, text)
  // A URL of its own, because a kept cursor goes by the URL.
  reader.stream = connect(`/events/numbers?reader=${name}`, { parse: 'text', ...options })
  for (const type of ['message', 'step']) reader.stream.on(type, ({ data }) => write(data))
  reader.stream.onSync((gap) => {
    reader.gap = gap
    write(`gap:${gap.reason}`)
  })
  reader.stream.onState((state) => reader.states.push(state))
  readers[name] = reader
}

globalThis.gotOf = (name) => {
  const got = []
  for (;;) {
    const text = sessionStorage.getItem(`${name} ${got.length}`)
    if (text === null) return got
    got.push(text)
  }
}

globalThis.readers = {}
