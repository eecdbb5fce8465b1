/** Opens an `EventSource` without any of our code, and writes down what the page is told. */
globalThis.listen = function listen(url) {
  const source = new EventSource(url)
  const native = { source, told: [] }
  const take = ({ data }) => native.told.push(data)
  source.onopen = () => native.told.push('open')
  // All that an error says: whether the browser will try again.
  source.onerror = () => native.told.push(source.readyState === EventSource.CLOSED ? 'closed' : 'connecting')
  source.onmessage = take
  source.addEventListener('step', take)
  natives.push(native)
}

globalThis.natives = []
