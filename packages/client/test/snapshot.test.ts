import { expect, test } from 'vitest'
import { createHandlers } from '../src/handlers.ts'
import { collectGarbage } from './support/garbage.ts'
import { message } from './support/scripted-server.ts'
import { moved, server, start, stateOf, useStage } from './support/stage.ts'

useStage()

test('a snapshot shows the state and the last events, as many as asked for', async () => {
  const { stream, events } = start({ keep: 2 })
  const visit = await server.stream()
  for (const id of ['e1', 'e2', 'e3', 'e4', 'e5', 'e6']) visit.send(...message(id))
  await events.until(6)
  const { events: last, ...state } = stream.getSnapshot()
  expect(last.map(({ id }) => id)).toEqual(['e5', 'e6'])
  expect(state).toMatchObject({ state: 'connected', cursor: 'e6', stale: false, transport: 'fetch' })
})

test('a snapshot is the same object until something changes, and its events the same array', async () => {
  const { stream, events } = start()
  ;(await server.stream()).send(...message('e1'))
  await events.until(1)
  const before = stream.getSnapshot()
  expect(stream.getSnapshot()).toBe(before)
  stream.close()
  expect(stream.getSnapshot()).not.toBe(before)
  expect(stream.getSnapshot().events).toBe(before.events)
})

test('listeners are told once for events that arrive together, when all of them show', async () => {
  const { stream, events } = start()
  const visit = await server.stream()
  await stateOf(stream, 'connected')
  const shown: number[] = []
  stream.subscribe(() => shown.push(stream.getSnapshot().events.length))
  visit.write([1, 2, 3].map((n) => `${message(`e${n}`).join('\n')}\n\n`).join(''))
  await events.until(3)
  expect(shown.at(-1)).toBe(3)
  expect(shown.length).toBeLessThan(3)
})

test('nothing is kept when nothing is asked for', async () => {
  const { stream, events } = start({ keep: 0 })
  ;(await server.stream()).send(...message('e1'))
  await events.until(1)
  expect(stream.getSnapshot().events).toEqual([])
})

test('events that are shown no more are not kept in memory', async () => {
  const handlers = createHandlers({ keep: 2 }, () => true)
  const delivered: WeakRef<object>[] = []
  handlers.on('message', (event) => delivered.push(new WeakRef(event)))
  for (let n = 0; n < 100; n++) void handlers.event({ id: `e${n}`, type: 'message', data: '1' })
  // In the turn that made it, a weak reference is a strong one.
  await new Promise((resolve) => setImmediate(resolve))
  collectGarbage()
  expect(delivered.filter((event) => event.deref()).length).toBeLessThanOrEqual(4)
  expect(handlers.latest().map(({ id }) => id)).toEqual(['e98', 'e99'])
})

test('a stream keeps no more events in memory than it shows, also when somebody has looked before', async () => {
  const { stream } = start({ keep: 2 })
  const delivered: WeakRef<object>[] = []
  stream.on('message', (event) => delivered.push(new WeakRef(event)))
  const visit = await server.stream()
  for (let n = 1; n <= 100; n++) {
    visit.send(...message(`e${n}`))
    await moved(stream, `e${n}`)
    if (n === 50) expect(stream.getSnapshot().events).toHaveLength(2)
  }
  collectGarbage()
  expect(delivered.filter((event) => event.deref()).length).toBeLessThanOrEqual(2)
  expect(stream.getSnapshot().events.map(({ id }) => id)).toEqual(['e99', 'e100'])
})

test.each([0.5, 2.5, Infinity])('keep may be %d', async (keep) => {
  const { stream, events } = start({ keep })
  const visit = await server.stream()
  for (const id of ['e1', 'e2', 'e3', 'e4']) visit.send(...message(id))
  await events.until(4)
  const ids = ['e1', 'e2', 'e3', 'e4']
  expect(stream.getSnapshot().events.map(({ id }) => id)).toEqual(keep < 1 ? [] : ids.slice(-Math.floor(keep)))
})
