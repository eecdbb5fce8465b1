// A page made with the React binding, for a test to look at. The query says what it shows.
import '@rejoin/client/element'
import { ConnectionStatus, useEventStream } from '@rejoin/client/react'
import '@rejoin/client/status.css'
import { createElement, StrictMode, useState } from 'react'
import { createRoot } from 'react-dom/client'

globalThis.readers = {}
globalThis.session = { token: undefined, signIns: 0 }

/** How often each frame was rendered in. Not where a page gets no frame for a second: a timer takes their part there. */
globalThis.rendersPerFrame = []
let renders = 0
let lastFrameAt = performance.now()
function countFrame(now) {
  if (renders && now - lastFrameAt < 900) globalThis.rendersPerFrame.push(renders)
  renders = 0
  lastFrameAt = now
  requestAnimationFrame(countFrame)
}
requestAnimationFrame(countFrame)

function Board() {
  const [{ url, token, identity }, set] = useState({ url: '/events/numbers', identity: 'ada' })
  globalThis.setSource = set
  const { value } = useEventStream(url, {
    retryMs: 100,
    identity,
    ...(token ? { token } : new URLSearchParams(location.search).has('token') && { token: () => session.token }),
    initial: { count: 0, inOrder: true, first: 0 },
    reduce: ({ count, inOrder, first }, { data }) => ({
      count: count + 1,
      first: first || data,
      inOrder: inOrder && (!first || data === first + count),
    }),
  })
  renders++
  const text = `${value.count} events, ${value.inOrder ? 'in order' : 'out of order'}, from ${value.first}`
  const onSignIn = async () => {
    session.signIns++
    session.token = 'good'
  }
  return createElement(
    'main',
    null,
    createElement('h1', null, 'Numbers'),
    createElement('p', null, text),
    createElement(ConnectionStatus, { source: url, onSignIn }),
  )
}

const isStrict = new URLSearchParams(location.search).has('strict')
createRoot(document.querySelector('#root')).render(
  createElement(isStrict ? StrictMode : 'div', null, createElement(Board)),
)
