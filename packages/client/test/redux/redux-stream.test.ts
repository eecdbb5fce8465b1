import { applyMiddleware, combineReducers, createStore } from 'redux'
import { expect, test } from 'vitest'
import { createReduxStream, type ReduxStreamOptions } from '../../src/redux/index.ts'
import { holdFrames } from '../support/frames.ts'
import { hello, message } from '../support/scripted-server.ts'
import { deferred, opened, server, useStage } from '../support/stage.ts'

useStage()

type Numbers = { message: number }

/** A store of Redux that sums up the numbers of a stream, and notes the types of all actions. */
function open(options: ReduxStreamOptions<Numbers> = {}) {
  const stream = createReduxStream<Numbers>(server.url, options)
  const types: string[] = []
  const sum = (state: number | undefined, action: { type: string; payload?: unknown }) => {
    if (!action.type.startsWith('@@')) types.push(action.type)
    if (action.type === 'set') return action.payload as number
    const events = action.type === stream.types.events ? (action.payload as NonNullable<typeof stream.event>[]) : []
    return events.reduce((sum, { data }) => sum + data, state ?? 0)
  }
  const reducer = combineReducers({ sum, connection: stream.reducer })
  const newStore = () => {
    const store = createStore(reducer, applyMiddleware(stream.middleware))
    opened.push({ close: () => store.dispatch(stream.close()) })
    return store
  }
  const store = newStore()
  const sumIs = (wanted: number) => expect.poll(() => store.getState().sum, { interval: 5 }).toBe(wanted)
  const stateIs = (wanted: string) => expect.poll(() => store.getState().connection.state, { interval: 5 }).toBe(wanted)
  return { stream, store, newStore, types, sumIs, stateIs }
}

test('a store connects when it is told to, and has every event once', async () => {
  const { stream, store, types, sumIs } = open()
  expect(store.getState().connection.state).toBe('closed')
  store.dispatch(stream.open())
  store.dispatch(stream.open())
  const visit = await server.stream()
  visit.send(...hello())
  const burst = Array.from({ length: 500 }, (_, index) => message(`e${index}`, 1).join('\n'))
  visit.write(`${burst.join('\n\n')}\n\n`)
  await sumIs(500)
  expect(server.visits()).toBe(1)
  // One action for what arrives together.
  expect(types.filter((type) => type === 'stream/events').length).toBeLessThan(10)
})

test('the connection is in the store, and can be opened again', async () => {
  const { stream, store, stateIs } = open({ name: 'orders' })
  store.dispatch(stream.open())
  expect(store.getState().connection.state).toBe('connecting')
  ;(await server.visit()).answer(404)
  await stateIs('closed')
  expect(store.getState().connection).toMatchObject({ closeReason: 'http-404' })
  store.dispatch(stream.reconnect())
  ;(await server.stream()).send(...hello())
  await stateIs('connected')
})

test('a gap is an action after the events before it, and later events wait for the state to be loaded', async () => {
  const loaded = deferred<number>()
  const { stream, store, types, sumIs } = open({
    onSync: async (_, { dispatch }) => dispatch({ type: 'set', payload: await loaded.promise }),
  })
  store.dispatch(stream.open())
  const visit = await server.stream()
  visit.send(...hello())
  visit.send(...message('e1', 1))
  visit.send('id: e5', 'event: sync-required', 'data: {"reason":"expired","channels":["orders"]}')
  visit.send(...message('e6', 3))
  await expect.poll(() => types, { interval: 5 }).toContain('stream/sync')
  loaded.resolve(100)
  await sumIs(103)
  expect(types.filter((type) => type !== 'stream/connection')).toEqual([
    'stream/open',
    'stream/events',
    'stream/sync',
    'set',
    'stream/events',
  ])
})

test('a stream that was closed goes on at its cursor when it is opened again', async () => {
  const { stream, store, sumIs } = open()
  store.dispatch(stream.open())
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await sumIs(1)
  store.dispatch(stream.close())
  expect(store.getState().connection).toMatchObject({ state: 'closed', stale: true })
  await visit.gone
  store.dispatch(stream.open())
  const next = await server.stream()
  expect(next.headers['last-event-id']).toBe('e1')
  next.send(...message('e2', 2))
  await sumIs(3)
})

test('a user who signs in right after another gets a new connection', async () => {
  let token = 'a'
  const { stream, store, sumIs } = open({ token: () => token })
  store.dispatch(stream.open())
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await sumIs(1)
  store.dispatch(stream.close())
  token = 'b'
  store.dispatch(stream.open())
  await visit.gone
  const next = await server.stream()
  expect(next.headers.authorization).toBe('Bearer b')
})

test('for another user the stream starts anew, and the connection of the first is closed', async () => {
  const { stream, store, sumIs } = open({ token: () => 'any' })
  store.dispatch(stream.open('ada'))
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await sumIs(1)
  store.dispatch(stream.open('ben'))
  const next = await server.stream()
  expect(next.headers['last-event-id']).toBeUndefined()
  await visit.gone
  store.dispatch(stream.open('ben'))
  next.send(...message('e2', 2))
  await sumIs(3)
  expect(server.visits()).toBe(2)
})

test('a store that is made for the next user gets nothing of the one before, although that was not closed', async () => {
  let token = 'a'
  const { stream, store, sumIs, stateIs, newStore } = open({ token: () => token })
  store.dispatch(stream.open())
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await sumIs(1)
  token = 'b'
  const next = newStore()
  next.dispatch(stream.open())
  await visit.gone
  await stateIs('closed')
  const second = await server.stream()
  expect(second.headers).toMatchObject({ authorization: 'Bearer b' })
  expect(second.headers['last-event-id']).toBeUndefined()
  second.send(...message('e2', 2))
  await expect.poll(() => next.getState().sum, { interval: 5 }).toBe(2)
  expect(store.getState().sum).toBe(1)
})

test.each(['open', 'close'] as const)(
  'events that no action holds yet never reach the store after %s has ended the stream of a user',
  async (order) => {
    const { arrived, schemas } = watchArrivals()
    const { stream, store, types, sumIs } = open({ token: () => 'any', schemas })
    const frames = holdFrames()
    store.dispatch(stream.open('ada'))
    const visit = await server.stream()
    visit.send(...message('e1', 1))
    await expect.poll(() => arrived).toEqual([1])
    store.dispatch(order === 'close' ? stream.close() : stream.open('ben'))
    await visit.gone
    frames.paint()
    store.dispatch(stream.open('ben'))
    const next = await server.stream()
    expect(next.headers['last-event-id']).toBeUndefined()
    next.send(...message('e2', 2))
    await expect.poll(() => arrived).toEqual([1, 2])
    expect(types).not.toContain('stream/events')
    frames.paint()
    await sumIs(2)
  },
)

test('events that no action held when the stream was closed are asked for again', async () => {
  const { arrived, schemas } = watchArrivals()
  const { stream, store, types, sumIs } = open({ schemas })
  const frames = holdFrames()
  store.dispatch(stream.open())
  const visit = await server.stream()
  visit.send(...hello({}, 'e0'))
  visit.send(...message('e1', 1))
  visit.send(...message('e2', 2))
  await expect.poll(() => arrived).toEqual([1, 2])
  store.dispatch(stream.close())
  await visit.gone
  frames.paint()
  store.dispatch(stream.open())
  const next = await server.stream()
  expect(next.headers['last-event-id']).toBe('e0')
  for (const number of [1, 2]) next.send(...message(`e${number}`, number))
  await expect.poll(() => arrived).toEqual([1, 2, 1, 2])
  expect(types).not.toContain('stream/events')
  frames.paint()
  await sumIs(3)
})

test('a stored cursor stays before events that no action held when the stream was closed', async () => {
  const saved: (string | null)[] = []
  const { arrived, schemas } = watchArrivals()
  const persist = { load: () => saved.at(-1), save: (cursor: string | null) => void saved.push(cursor) }
  const { stream, store } = open({ persist, schemas })
  const frames = holdFrames()
  store.dispatch(stream.open())
  const visit = await server.stream()
  visit.send(...hello({}, 'e0'))
  visit.send(...message('e1', 1))
  await expect.poll(() => arrived).toEqual([1])
  store.dispatch(stream.close())
  await visit.gone
  frames.paint()
  store.dispatch(stream.open())
  expect((await server.stream()).headers['last-event-id']).toBe('e0')
  expect(saved).toEqual(['e0'])
})

/** Knows of an event before an action holds it. */
function watchArrivals() {
  const arrived: unknown[] = []
  const validate = (value: unknown) => {
    arrived.push(value)
    return { value: value as number }
  }
  return { arrived, schemas: { message: { '~standard': { version: 1, vendor: 'test', validate } } } as const }
}

test('the stored cursor waits until the events are in the store, and for a promise of the dispatch', async () => {
  const saved: unknown[] = []
  const { stream, store, sumIs } = open({ persist: { load: () => null, save: (cursor) => void saved.push(cursor) } })
  const frames = holdFrames()
  store.dispatch(stream.open())
  const visit = await server.stream()
  visit.send(...hello({}, 'e0'))
  await expect.poll(() => saved).toEqual(['e0'])
  visit.send(...message('e1', 1))
  await expect.poll(() => frames.requested).toBeGreaterThan(0)
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(saved).toEqual(['e0'])
  frames.paint()
  await sumIs(1)
  await expect.poll(() => saved).toEqual(['e0', 'e1'])
})
