import * as React from 'react'
import {
  Component,
  createElement,
  Fragment,
  type ReactNode,
  Suspense,
  useEffect,
  useState,
  useSyncExternalStore,
} from 'react'
import { expect, test, vi } from 'vitest'
import { connect } from '../../src/index.ts'
import { ConnectionStatus, type EventOptions, useConnection, useEventStream } from '../../src/react/index.ts'
import { mounted, newRoot, shows, useDocument } from '../support/document.ts'
import { render, renderStrictly } from '../support/react.ts'
import { hello, message } from '../support/scripted-server.ts'
import { deferred, opened, server, useStage } from '../support/stage.ts'

useStage()
useDocument()

type Numbers = { message: number }

const { Activity } = React as { Activity?: (props: { mode: string; children?: ReactNode }) => ReactNode }

/** Shows all numbers that it was given, and counts how often it was rendered. */
function Sum(props: EventOptions<Numbers, number> & { url?: string | null; renders?: unknown[] }) {
  const { url = server.url, renders, ...options } = props
  const { value, state } = useEventStream<Numbers, number>(url, {
    ...options,
    initial: 0,
    reduce: (sum, { data }) => sum + data,
  })
  renders?.push(value)
  return `${state} ${value}`
}

function List({ url = server.url, keep = 100 }: { url?: string; keep?: number }) {
  const { events } = useEventStream<Numbers>(url, { keep })
  return events.map(({ data }) => data).join(' ')
}

test('every event of a burst reaches the reducer, and the component renders once for those that arrive together', async () => {
  const renders: unknown[] = []
  const { element } = await render(createElement(Sum, { renders }))
  const visit = await server.stream()
  visit.send(...hello())
  await shows(element, 'connected 0')
  const before = renders.length
  const burst = Array.from({ length: 500 }, (_, index) => message(`e${index}`, 1).join('\n'))
  visit.write(`${burst.join('\n\n')}\n\n`)
  await shows(element, 'connected 500')
  // What is sent at once may arrive in pieces, and each piece in a frame of its own.
  expect(renders.length - before).toBeLessThan(10)
})

test('without a reducer there are the last events, also for a component that comes later', async () => {
  const { element, render: again } = await render(createElement(List, { key: 'first' }))
  const visit = await server.stream()
  for (const number of [1, 2, 3]) visit.send(...message(`e${number}`, number))
  await shows(element, '1 2 3')
  again(createElement(Fragment, null, createElement(List, { key: 'first' }), ' | ', createElement(List, { keep: 2 })))
  await shows(element, '1 2 3 | 2 3')
  visit.send(...message('e4', 4))
  await shows(element, '1 2 3 4 | 3 4')
  expect(server.visits()).toBe(1)
})

test('StrictMode, which mounts everything twice, opens one connection and counts each event once', async () => {
  const { element } = await renderStrictly(createElement(Sum))
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  visit.send(...message('e2', 2))
  await shows(element, 'connected 3')
  expect(server.visits()).toBe(1)
})

test('components with the same URL share a stream, which closes after the last of them has left', async () => {
  const both = createElement(Fragment, null, createElement(Sum, { key: 'a' }), ' | ', createElement(Sum, { key: 'b' }))
  const { element, render: again, unmount } = await render(both)
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await shows(element, 'connected 1 | connected 1')
  again(createElement(Fragment, null, createElement(Sum, { key: 'a' })))
  visit.send(...message('e2', 2))
  await shows(element, 'connected 3')
  unmount()
  await visit.gone
  expect(server.visits()).toBe(1)
})

test('a child that is mounted before the parent that has the token does not connect without it', async () => {
  function Page() {
    useEventStream(server.url, { token: 'secret' })
    return createElement(ConnectionStatus, { source: server.url })
  }
  await render(createElement(Page))
  const { headers } = await server.stream()
  expect(headers.authorization).toBe('Bearer secret')
  expect(server.visits()).toBe(1)
})

test('another token of the same user is used at once, by the same stream, from its cursor', async () => {
  const { element, render: again } = await render(createElement(Sum, { identity: 'ada', token: 'first' }))
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await shows(element, 'connected 1')
  again(createElement(Sum, { identity: 'ada', token: 'second' }))
  const next = await server.stream()
  expect(next.headers).toMatchObject({ authorization: 'Bearer second', 'last-event-id': 'e1' })
  next.send(...message('e2', 2))
  await shows(element, 'connected 3')
  expect(server.visits()).toBe(2)
})

test.each([
  ['a token', { token: 'a' }, { token: 'b' }],
  ['a header', { headers: { 'X-Key': 'a' } }, { headers: { 'X-Key': 'b' } }],
  ['an identity', { identity: 'a', token: () => 'any' }, { identity: 'b', token: () => 'any' }],
])('when the user changes, which %s shows, the component starts anew', async (_, first, second) => {
  const { element, render: again } = await render(createElement(Sum, first))
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await shows(element, 'connected 1')
  again(createElement(Sum, second))
  const next = await server.stream()
  expect(next.headers['last-event-id']).toBeUndefined()
  await shows(element, 'connected 0')
  await visit.gone
  next.send(...message('e2', 2))
  await shows(element, 'connected 2')
})

test('two components of one user with different tokens render again and again, on one connection', async () => {
  function Reader({ token }: { token: string }) {
    const [, again] = useState(0)
    const { events } = useEventStream<Numbers>(server.url, { identity: 'ada', token })
    useEffect(() => {
      const timer = setInterval(() => again((count) => count + 1), 5)
      return () => clearInterval(timer)
    }, [])
    return createElement('i', null, events.length)
  }
  const { element } = await render(['old', 'new'].map((token) => createElement(Reader, { key: token, token })))
  const visit = await server.stream()
  for (const number of [1, 2, 3, 4]) {
    visit.send(...message(`e${number}`, 1))
    await shows(element, `${number}${number}`)
  }
  expect(server.visits()).toBe(1)
})

test('a component that replaces another gets a new stream when nothing shows that the user is the same', async () => {
  const of = (key: string) => createElement(Sum, { key, token: () => key })
  const { element, render: again } = await render(of('a'))
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await shows(element, 'connected 1')
  again(of('b'))
  const next = await server.stream()
  expect(next.headers).toMatchObject({ authorization: 'Bearer b' })
  await visit.gone
  next.send(...message('e2', 2))
  await shows(element, 'connected 2')
})

test('a component that replaces another of the same user goes on with the open stream', async () => {
  const joined: string[] = []
  const of = (key: string) => createElement(Page, { key, name: key })
  const { element, render: again } = await render(of('a'))
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await shows(element, 'connected 1')
  again(of('b'))
  await shows(element, 'connected 0')
  // It gets events from its first effect on, which is later than what it shows first.
  await expect.poll(() => joined).toEqual(['a', 'b'])
  visit.send(...message('e2', 2))
  await shows(element, 'connected 2')
  expect(server.visits()).toBe(1)

  function Page({ name }: { name: string }) {
    useEffect(() => void joined.push(name), [name])
    return createElement(Sum, { identity: 'ada', token: () => 'any' })
  }
})

test('sign-out, as no URL, closes the connection at once', async () => {
  const { element, render: again } = await render(createElement(Sum, { identity: 'ada' }))
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await shows(element, 'connected 1')
  again(createElement(Sum, { identity: 'ada', url: null }))
  await shows(element, 'closed 0')
  await visit.gone
})

test('another URL is another stream, and the first one is closed', async () => {
  const { element, render: again } = await render(createElement(Sum))
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await shows(element, 'connected 1')
  again(createElement(Sum, { url: `${server.url}?second` }))
  const next = await server.stream()
  expect(next.url.searchParams.has('second')).toBe(true)
  expect(next.headers['last-event-id']).toBeUndefined()
  next.send(...message('e9', 5))
  await shows(element, 'connected 5')
  await visit.gone
})

test('no URL is no connection', async () => {
  const { element, render: again } = await render(createElement(Sum, { url: null }))
  await shows(element, 'closed 0')
  again(createElement(Sum))
  ;(await server.stream()).send(...message('e1', 1))
  await shows(element, 'connected 1')
  expect(server.visits()).toBe(1)
})

test('a component that suspends gets what came meanwhile', async () => {
  const ready = deferred()
  let isReady = true
  function Sleeper() {
    const { value } = useEventStream<Numbers, number>(server.url, {
      ...{ initial: 0, reduce: (sum, { data }) => sum + data },
    })
    if (!isReady) throw ready.promise
    return `sum ${value}`
  }
  const page = () => createElement(Suspense, { fallback: 'asleep' }, createElement(Sleeper))
  const { element, render: again } = await render(page())
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await shows(element, 'sum 1')
  isReady = false
  again(page())
  await expect.poll(() => element.innerHTML, { interval: 5 }).toContain('asleep')
  visit.send(...message('e2', 2))
  isReady = true
  ready.resolve()
  await expect.poll(() => element.innerHTML, { interval: 5 }).toContain('sum 3')
  expect(server.visits()).toBe(1)
})

// React 18 cannot do that.
if (Activity) {
  test('a component that React hides and shows again goes on at its cursor', async () => {
    const page = (mode: string) => createElement(Activity, { mode }, createElement(Sum))
    const { element, render: again } = await render(page('visible'))
    const visit = await server.stream()
    visit.send(...message('e1', 1))
    await shows(element, 'connected 1')
    again(page('hidden'))
    await visit.gone
    again(page('visible'))
    const next = await server.stream()
    expect(next.headers['last-event-id']).toBe('e1')
    next.send(...message('e2', 2))
    await shows(element, 'connected 3')
  })

  test('thirty components that React hides and shows again share one connection, and each goes on at its cursor', async () => {
    const sums = Array.from({ length: 30 }, (_, key) => createElement(Sum, { key }))
    const page = (mode: string) =>
      createElement(Fragment, null, createElement(Activity, { mode }, ...sums), createElement(Sum))
    const { element, render: again } = await render(page('visible'))
    const visit = await server.stream()
    visit.send(...message('e1', 1))
    await shows(element, 'connected 1'.repeat(31))
    again(page('hidden'))
    await new Promise((resolve) => setTimeout(resolve))
    visit.send(...message('e2', 2))
    await expect.poll(() => element.textContent).toContain('connected 3')
    again(page('visible'))
    await shows(element, 'connected 3'.repeat(31))
    visit.send(...message('e3', 3))
    await shows(element, 'connected 6'.repeat(31))
    expect(server.visits()).toBe(1)
  })
}

test('the result of onSync replaces the value, and later events wait for it', async () => {
  const loaded = deferred<number>()
  const onSync = vi.fn(() => loaded.promise)
  const { element } = await render(createElement(Sum, { onSync }))
  const visit = await server.stream()
  visit.send(...hello())
  visit.send(...message('e1', 1))
  await shows(element, 'connected 1')
  visit.send('id: e5', 'event: sync-required', 'data: {"reason":"expired","channels":["orders"]}')
  visit.send(...message('e6', 3))
  await vi.waitFor(() => expect(onSync).toHaveBeenCalledWith(expect.objectContaining({ reason: 'expired' })))
  loaded.resolve(100)
  await shows(element, 'connected 103')
})

test('an onSync that a later rendering gives is called', async () => {
  const { element, render: again } = await render(createElement(Sum))
  const visit = await server.stream()
  visit.send(...hello())
  visit.send(...message('e1', 1))
  await shows(element, 'connected 1')
  again(createElement(Sum, { onSync: () => 100 }))
  visit.send(...message('e2', 2))
  await shows(element, 'connected 3')
  visit.send('id: e5', 'event: sync-required', 'data: {"reason":"expired","channels":["orders"]}')
  await shows(element, 'connected 100')
})

test('onEvent is called with every event, and with keep: 0 nothing is rendered for it', async () => {
  const events: unknown[] = []
  let renders = 0
  function Silent() {
    renders++
    const { state } = useEventStream<Numbers>(server.url, { keep: 0, onEvent: ({ data }) => events.push(data) })
    return state
  }
  const { element } = await render(createElement(Silent))
  const visit = await server.stream()
  visit.send(...hello())
  await shows(element, 'connected')
  const before = renders
  for (const number of [1, 2, 3]) visit.send(...message(`e${number}`, number))
  await expect.poll(() => events, { interval: 5 }).toEqual([1, 2, 3])
  expect(renders).toBe(before)
})

test('a reducer that throws is reported, and costs its own event alone', async () => {
  const reported = vi.spyOn(console, 'error').mockImplementation(() => undefined)
  function Strict() {
    const { value } = useEventStream<Numbers, number>(server.url, {
      initial: 0,
      reduce(sum, { data }) {
        if (data === 2) throw new Error('no twos')
        return sum + data
      },
    })
    return value
  }
  const { element } = await render(createElement(Strict))
  const visit = await server.stream()
  for (const number of [1, 2, 3]) visit.send(...message(`e${number}`, number))
  await shows(element, '4')
  expect(reported).toHaveBeenCalledWith(new Error('no twos'))
})

test('a stream of your own is read, and stays open when the component leaves', async () => {
  const stream = connect<Numbers>(server.url)
  opened.push(stream)
  function Own() {
    return useEventStream(stream).events.length
  }
  const { element, unmount } = await render(createElement(Own))
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await shows(element, '1')
  unmount()
  expect(stream.state.state).toBe('connected')
})

test('a URL that cannot be used reaches the error boundary', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => undefined)
  class Boundary extends Component<{ children: ReactNode }, { code?: string }> {
    override state: { code?: string } = {}
    static getDerivedStateFromError({ code }: { code: string }) {
      return { code }
    }
    override render() {
      return this.state.code ?? this.props.children
    }
  }
  const { element } = await render(createElement(Boundary, null, createElement(Sum, { url: 'ftp://example.com/' })))
  await shows(element, 'invalid-option')
})

test('a server renders the initial value and opens no connection, and the page takes over from there', async () => {
  const { renderToString } = await import('react-dom/server')
  const { hydrateRoot } = await import('react-dom/client')
  const errors = vi.spyOn(console, 'error')
  function Page() {
    const { state } = useConnection(server.url)
    return createElement(
      'p',
      null,
      state,
      ' ',
      createElement(Sum),
      createElement(ConnectionStatus, { source: server.url }),
    )
  }
  const html = renderToString(createElement(Page))
  expect(html).toContain('Connecting…')
  expect(server.visits()).toBe(0)
  const element = newRoot()
  element.innerHTML = html
  mounted.push(hydrateRoot(element, createElement(Page)))
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await expect.poll(() => element.textContent, { interval: 5 }).toContain('connected 1')
  expect(errors).not.toHaveBeenCalled()
})

test('a server renders a stream of its own making by `getSnapshot`, without a warning', async () => {
  const { renderToString } = await import('react-dom/server')
  const errors = vi.spyOn(console, 'error')
  const stream = connect(server.url)
  opened.push(stream)
  function State() {
    const { state, events } = useSyncExternalStore(stream.subscribe, stream.getSnapshot, stream.getSnapshot)
    return createElement('p', null, `${state} ${events.length}`)
  }
  expect(renderToString(createElement(State))).toContain('connecting 0')
  function Given() {
    const { state, events } = useEventStream(stream)
    return createElement('p', null, `${state} ${events.length}`)
  }
  expect(renderToString(createElement(Given))).toContain('connecting 0')
  expect(errors).not.toHaveBeenCalled()
})
