// A page that reads with any binding. Tests say what it reads, and look at what it has got.
import { connect } from '@rejoin/client'
import '@rejoin/client/element'
import { ConnectionStatus, useEventStream } from '@rejoin/client/react'
import { createReduxStream } from '@rejoin/client/redux'
import '@rejoin/client/status.css'
import { useEventStream as useVueStream } from '@rejoin/client/vue'
import { Activity, createElement, useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { applyMiddleware, createStore } from 'redux'
import { readable } from 'svelte/store'
import { createApp, h, KeepAlive, shallowRef, watchEffect } from 'vue'

globalThis.readers = {}

const url = '/events/numbers'
const main = document.querySelector('#root')
const root = createRoot(main)

/**
 * Each mounts something that reads with these options, and returns what unmounts it. `show` gets the state and the events
 * that are on the screen, `handle` every event. `handle` may return a promise.
 */
globalThis.bindings = {
  React(options, show, handle) {
    const root = createRoot(document.createElement('div'))
    update(options, show, handle)
    return Object.assign(() => root.render(null), { update })

    function update(options, show, handle) {
      root.render(createElement(Reader, { options, show, handle }))
    }

    // Another function each time, so that React does not take it for the component before.
    function Reader({ options, show, handle }) {
      const view = useEventStream(url, { ...options, onEvent: handle })
      useEffect(() => show(view, view.events))
      return null
    }
  },

  Vue(options, show, handle) {
    const props = shallowRef({ options, show, handle })
    const app = createApp({
      setup() {
        const { events, state, closeReason } = useVueStream(url, () => {
          const { options, handle } = props.value
          return { ...options, onEvent: handle }
        })
        watchEffect(() => props.value.show({ state: state.value, closeReason: closeReason.value }, events.value))
        return () => null
      },
    })
    app.mount(document.createElement('div'))
    const update = (options, show, handle) => {
      props.value = { options, show, handle }
    }
    return Object.assign(() => app.unmount(), { update })
  },

  /** All users in one `<KeepAlive>`, which keeps the components of those who have left. */
  'Vue in KeepAlive'(options, show, handle) {
    const component = {
      setup() {
        const { events, state, closeReason } = useVueStream(url, { ...options, onEvent: handle })
        watchEffect(() => show({ state: state.value, closeReason: closeReason.value }, events.value))
        return () => null
      },
    }
    if (!keptAlive) {
      keptAlive = shallowRef()
      const render = () => h(KeepAlive, () => keptAlive.value && h(keptAlive.value))
      createApp(() => render()).mount(document.createElement('div'))
    }
    keptAlive.value = component
    return () => {
      keptAlive.value = undefined
    }
  },

  /** Leaves the store of the last user as it is. */
  'a new Redux store'(options, show, handle) {
    newStores ??= { stream: streamOf(liveOf(options, () => newStores.options)) }
    newStores.options = options
    const { stream } = newStores
    const it = newReduxStore(stream)
    Object.assign(it, { show, handle })
    it.store.dispatch(stream.open(options.identity))
    return () => undefined
  },

  /** One store for all users, except for credentials as text, which a stream has for good. */
  Redux(options, show, handle) {
    const isText = [options.token, options.headers].some((given) => given && typeof given !== 'function')
    const it = (!isText && reduxStore) || newReduxStore(streamOf(isText ? options : liveOf(options, () => it.options)))
    Object.assign(it, { show, handle, options })
    if (!isText) reduxStore = it
    it.store.dispatch(it.stream.open(options.identity))
    return () => it.store.dispatch(it.stream.close())
  },

  Svelte(options, show, handle) {
    const numbers = readable({ events: [] }, (set) => {
      const stream = connect(url, options)
      stream.on('*', handle)
      stream.subscribe(() => set(stream.getSnapshot()))
      return () => stream.close()
    })
    return numbers.subscribe((view) => show(view, view.events))
  },

  /** A status reads nothing. It has no credentials of its own, but may show the stream of somebody who has. */
  element(options, show) {
    const { token, headers, fetch } = options
    const stream = (token || headers || fetch) && connect(url, options)
    const element = document.createElement('rejoin-status')
    const states = { live: 'connected', forbidden: 'closed' }
    new MutationObserver(() => {
      const { status } = element.dataset
      show({ state: states[status], closeReason: status === 'forbidden' ? 'http-403' : null }, [])
    }).observe(element, { attributes: true })
    if (stream) element.source = stream
    else element.setAttribute('src', url)
    main.append(element)
    return () => {
      element.remove()
      stream?.close()
    }
  },
}

let keptAlive
let reduxStore
let newStores

/** The same functions for every user, each of which asks the one of the user who is there. */
function liveOf(options, current) {
  const isFunction = ([, given]) => typeof given === 'function'
  const live = ([name]) => [name, (...given) => current()[name](...given)]
  return { ...options, ...Object.fromEntries(Object.entries(options).filter(isFunction).map(live)) }
}

function streamOf({ identity, ...options }) {
  return createReduxStream(url, options)
}

function newReduxStore(stream) {
  const it = { stream, store: createStore(reduce, applyMiddleware(stream.middleware, awaiting)) }
  it.store.subscribe(() => it.show(it.store.getState(), []))
  return it

  function reduce(state, action) {
    if (action.type === stream.types.events) it.show(state, action.payload)
    return stream.reducer(state, action)
  }

  function awaiting() {
    return (next) => (action) => {
      next(action)
      if (action.type === stream.types.events) return Promise.all(action.payload.map((event) => it.handle(event)))
    }
  }
}

/** Thirty readers that React hides and shows again, one that stays, and a status of each kind. */
globalThis.mountMany = () => {
  globalThis.shown = Array.from({ length: 31 }, () => 0)
  root.render(createElement(Page))

  function Page() {
    const [isHidden, setHidden] = useState(false)
    globalThis.setHidden = setHidden
    const many = shown.slice(1).map((_, index) => createElement(Sum, { key: index, index: index + 1 }))
    return createElement(
      'main',
      null,
      createElement(Activity, { mode: isHidden ? 'hidden' : 'visible' }, ...many),
      createElement(Sum, { index: 0 }),
      createElement(ConnectionStatus, { source: url }),
    )
  }

  function Sum({ index }) {
    const { value } = useEventStream(url, { keep: 0, initial: 0, reduce: (count) => count + 1 })
    useEffect(() => {
      shown[index] = value
    })
    return null
  }
}

/** A reader whose URL changes with every letter that is typed. */
globalThis.mountSearch = () => {
  root.render(createElement(Search))

  function Search() {
    const [query, setQuery] = useState('')
    globalThis.setQuery = setQuery
    const { state } = useEventStream(`${url}?type=${query}`)
    return createElement('p', null, `${query} ${state}`)
  }
}
