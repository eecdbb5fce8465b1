import { connect } from '/client/index.js'

/**
 * Opens a stream and writes down what it gives. What it got is kept in `sessionStorage`, as an application that keeps its
 * cursor there would keep what it made of its events.
 */
globalThis.read = function read(name, options) {
  const reader = { states: [] }
  const write = (text) => sessionStorage.setItem(name, `${sessionStorage.getItem(name) ?? ''}${text} `)
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

globalThis.gotOf = (name) => (sessionStorage.getItem(name) ?? '').split(' ').filter(Boolean)
globalThis.readers = {}
