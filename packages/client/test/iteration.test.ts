import { expect, test } from 'vitest'
import { message } from './scripted-server.ts'
import { moved, server, start } from './stage.ts'

test('a loop gets every event, and ends when the stream is closed', async () => {
  const { stream } = start()
  const seen: string[] = []
  const looped = (async () => {
    for await (const { id } of stream) {
      seen.push(id)
      if (id === 'e3') stream.close()
    }
  })()
  const visit = await server.stream()
  visit.write([1, 2, 3, 4].map((n) => `${message(`e${n}`).join('\n')}\n\n`).join(''))
  await looped
  expect(seen).toEqual(['e1', 'e2', 'e3'])
})

test('the stream is read at the pace of the loop, and an event counts once the loop is done with it', async () => {
  const { stream, events } = start()
  const places: unknown[] = []
  const visit = server.stream()
  const looped = (async () => {
    for await (const { id } of stream) {
      // More turns than the events would take that are already here.
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
      places.push([id, stream.cursor, events.all.length])
      if (id === 'e3') break
    }
  })()
  ;(await visit).write([1, 2, 3].map((n) => `${message(`e${n}`).join('\n')}\n\n`).join(''))
  await looped
  expect(places).toEqual([
    ['e1', null, 1],
    ['e2', 'e1', 2],
    ['e3', 'e2', 3],
  ])
})

test('a loop that is left lets the stream go on without it', async () => {
  const { stream, events } = start()
  const looped = (async () => {
    for await (const _ of stream) break
  })()
  const visit = await server.stream()
  visit.send(...message('e1'))
  await looped
  visit.send(...message('e2'))
  await events.until(2)
  expect(stream.cursor).toBe('e2')
})

test('an event in the hands of a loop is not delivered again by the next connection', async () => {
  const { stream, events } = start()
  const seen: string[] = []
  const looped = (async () => {
    for await (const { id } of stream) {
      if (id === 'e1') stream.reconnect()
      seen.push(id)
      if (id === 'e2') break
    }
  })()
  ;(await server.stream()).send(...message('e1'))
  const second = await server.stream()
  for (const id of ['e1', 'e2']) second.send(...message(id))
  await looped
  expect(seen).toEqual(['e1', 'e2'])
  expect(events.data()).toEqual(['e1', 'e2'])
})

test('a loop ends when the stream is closed while an event is on its way to it', async () => {
  const { stream } = start()
  stream.on('message', () => queueMicrotask(() => stream.close()))
  const seen: string[] = []
  const looped = (async () => {
    for await (const { id } of stream) seen.push(id)
  })()
  ;(await server.stream()).send(...message('e1'))
  await looped
  expect(seen).toEqual(['e1'])
  await moved(stream, 'e1')
})

test('a loop over a stream that is closed ends at once', async () => {
  const { stream } = start()
  stream.close()
  for await (const event of stream) throw new Error(`got ${event.id}`)
})
