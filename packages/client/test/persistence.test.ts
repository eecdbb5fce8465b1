import { expect, test, vi } from 'vitest'
import { hello, message } from './scripted-server.ts'
import { deferred, moved, retried, server, start } from './stage.ts'

/** As much of `sessionStorage` as is used. */
function storage() {
  const kept = new Map<string, string>()
  vi.stubGlobal('sessionStorage', {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
  })
  return kept
}

test('a page that is loaded again continues where it was', async () => {
  const kept = storage()
  const { stream, events } = start({ persist: 'session' })
  const first = await server.stream()
  first.send(...hello({}, 'e0'))
  for (const id of ['e1', 'e2']) first.send(...message(id))
  await events.until(2)
  await moved(stream, 'e2')
  expect([...kept]).toEqual([[`rejoin:${server.url}`, 'e2']])
  stream.close()

  start({ persist: 'session', from: 'e0' })
  expect((await server.visit()).headers['last-event-id']).toBe('e2')
})

test('two streams of one URL do not share a place in silence', async () => {
  storage()
  const error = vi.spyOn(console, 'error').mockReturnValue()
  const { stream } = start({ persist: 'session' })
  start({ persist: 'session' })
  await server.visit()
  await server.visit()
  expect(error).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: 'invalid-option' }))
  stream.close()
  start({ persist: 'session' })
  await server.visit()
  expect(error).toHaveBeenCalledOnce()
})

test('a place is saved after the handlers have run, so that a page left in between gets the event again', async () => {
  const log: unknown[] = []
  const store = { load: () => null, save: (cursor: string | null) => log.push(cursor) }
  const { stream, events } = start({ persist: store })
  stream.on('message', ({ id }) => log.push(`handled ${id}`))
  const visit = await server.stream()
  visit.send(...message('e1'))
  await events.until(1)
  visit.send(...message('e2'))
  await events.until(2)
  await moved(stream, 'e2')
  expect(log).toEqual(['handled e1', 'e1', 'handled e2', 'e2'])
})

test('events that arrive together are saved once', async () => {
  const saved: unknown[] = []
  const { events } = start({ persist: { load: () => null, save: (cursor) => saved.push(cursor) } })
  const visit = await server.stream()
  visit.write([1, 2, 3].map((n) => `${message(`e${n}`).join('\n')}\n\n`).join(''))
  await events.until(3)
  expect(saved.length).toBeLessThan(3)
  expect(saved.at(-1)).toBe('e3')
})

test('a store that answers later is waited for, and nothing is asked of the server before', async () => {
  const loaded = deferred<string>()
  const { stream } = start({ persist: { load: () => loaded.promise, save: () => undefined } })
  stream.reconnect()
  expect(stream.state).toMatchObject({ state: 'backoff', nextRetryAt: null })
  loaded.resolve('e7')
  expect((await server.visit()).headers['last-event-id']).toBe('e7')
  expect(server.visits()).toBe(1)
})

test('a stream that is closed before its store has answered stays closed', async () => {
  const loaded = deferred<string>()
  const { stream } = start({ persist: { load: () => loaded.promise, save: () => undefined } })
  stream.close()
  loaded.resolve('e7')
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  expect(stream.state.state).toBe('closed')
  expect(server.visits()).toBe(0)
})

test('a store that fails is reported, and the stream goes on without it', async () => {
  const error = vi.spyOn(console, 'error').mockReturnValue()
  const fail = () => {
    throw new Error('storage is forbidden')
  }
  const { events } = start({ persist: { load: fail, save: fail }, from: 'e1' })
  const visit = await server.stream()
  expect(visit.headers['last-event-id']).toBe('e1')
  visit.send(...message('e2'))
  await events.until(1)
  expect(error).toHaveBeenCalledWith(expect.objectContaining({ message: 'storage is forbidden' }))
})

test('what is stored and is no id is not sent', async () => {
  storage().set(`rejoin:${server.url}`, 'x'.repeat(8001))
  start({ persist: 'session' })
  expect((await server.visit()).headers['last-event-id']).toBeUndefined()
})

test('a place that was given up is forgotten', async () => {
  const kept = storage()
  const { stream, events } = start({ persist: 'session' })
  const visit = await server.stream()
  visit.send(...message('e1'))
  await events.until(1)
  visit.send('id', 'data: 1')
  await events.until(2)
  expect(stream.cursor).toBeNull()
  expect([...kept.values()]).toEqual([''])
  visit.cut()
  await retried(stream)
  expect((await server.visit()).headers['last-event-id']).toBeUndefined()
})
