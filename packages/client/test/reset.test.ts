import { expect, test } from 'vitest'
import { message } from './support/scripted-server.ts'
import { server, start, stateOf, useStage } from './support/stage.ts'

useStage()

test('a stream that is reset forgets its cursor and connects at once, as one that has never been open', async () => {
  const { stream, events } = start()
  const first = await server.stream()
  first.send(...message('e1'))
  await events.until(1)
  expect(stream.cursor).toBe('e1')
  stream.reset()
  expect(stream.cursor).toBeNull()
  const fresh = await server.stream()
  expect(fresh.headers['last-event-id']).toBeUndefined()
  expect(fresh.url.searchParams.get('lastEventId')).toBeNull()
  fresh.send(...message('e9'))
  expect(await events.until(2)).toEqual(['e1', 'e9'])
  expect(stream.cursor).toBe('e9')
})

test('a reset also removes the stored cursor', async () => {
  const saved: (string | null)[] = []
  const { stream, events } = start({ persist: { load: () => 'e0', save: (cursor) => saved.push(cursor) } })
  const first = await server.stream()
  expect(first.headers['last-event-id']).toBe('e0')
  first.send(...message('e1'))
  await events.until(1)
  stream.reset()
  await server.stream()
  expect(saved.at(-1)).toBeNull()
})

test('a reset inside a handler counts after the event that was handled', async () => {
  const { stream, events } = start()
  stream.on('*', ({ id }) => id === 'e1' && stream.reset())
  const first = await server.stream()
  first.send(...message('e1'))
  await events.until(1)
  const fresh = await server.stream()
  expect(fresh.headers['last-event-id']).toBeUndefined()
  expect(stream.cursor).toBeNull()
})

test('a reset opens a stream again that a server closed; a stream that its owner closed stays closed', async () => {
  const { stream, events } = start()
  const first = await server.stream()
  first.send(...message('e1'))
  await events.until(1)
  stream.reconnect()
  ;(await server.visit()).answer(404)
  await stateOf(stream, 'closed')
  stream.reset()
  expect((await server.stream()).headers['last-event-id']).toBeUndefined()
  stream.close()
  stream.reset()
  expect(stream.state).toMatchObject({ state: 'closed', closeReason: 'closed' })
  expect(server.visits()).toBe(3)
})
