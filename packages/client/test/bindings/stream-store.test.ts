import { expect, test, vi } from 'vitest'
import { statusOf } from '../../src/bindings/status.ts'
import { createStreamStore, type StoreOptions } from '../../src/bindings/stream-store.ts'
import { hello, message } from '../support/scripted-server.ts'
import { clock, opened, server, useStage } from '../support/stage.ts'

useStage()

/** A store that somebody subscribes to, with all that was shown. */
function subscribed(options: StoreOptions = {}, reads = true) {
  const store = createStreamStore(server.url, { clock, ...options }, reads)
  const shown: unknown[] = []
  opened.push({ close: store.subscribe(() => shown.push(store.getSnapshot())) })
  const status = () => statusOf(store.getSnapshot())?.text
  return { store, shown, status, becomes: (text: string) => expect.poll(status, { interval: 5 }).toBe(text) }
}

test('a countdown shows every second, and the words follow the connection through its life', async () => {
  const { status, becomes } = subscribed({ token: () => 'old' })
  expect(status()).toBe('Connecting…')
  const visit = await server.stream()
  visit.send(...hello({ heartbeatMs: 1000 }))
  await becomes('Live')
  // A heartbeat is overdue.
  clock.advance(6500)
  await becomes('May be out of date')
  visit.send(...hello({ heartbeatMs: 1000 }))
  await becomes('Live')
  visit.cut()
  await becomes('Reconnecting in 1 s…')
  clock.advance(1000)
  const second = await server.visit()
  await becomes('Reconnecting…')
  second.answer(503, { 'retry-after': '4' })
  await expect.poll(status, { interval: 5 }).toMatch(/^The server is busy\. Next attempt in [45] s…$/)
  // Less than a second of it has passed.
  for (let seconds = Number(status()?.match(/\d/)); seconds > 0; seconds--) {
    await becomes(`The server is busy. Next attempt in ${seconds} s…`)
    clock.advance(1000)
  }
  ;(await server.visit()).answer(401)
  ;(await server.visit()).answer(401)
  await becomes('Signed out')
})

test.each([
  [404, 'Not found', undefined],
  [401, 'Signed out', 'Sign in'],
  [204, 'Ended', undefined],
])('after %i there is "%s" and the button %s', async (code, text, button) => {
  const { store, becomes } = subscribed()
  const rejected = await server.visit()
  rejected.answer(code)
  rejected.end()
  await becomes(text)
  expect(statusOf(store.getSnapshot())?.button).toBe(button)
  store.getSnapshot().reconnect()
  ;(await server.stream()).send(...hello())
  await becomes('Live')
})

test('words can be replaced, one by one', async () => {
  const { store } = subscribed()
  expect(statusOf(store.getSnapshot(), { connecting: 'Verbinde …' })?.text).toBe('Verbinde …')
})

test('a stream that nobody has opened, or that its owner has closed, has no status', () => {
  expect(statusOf(createStreamStore(null, {}, false).getSnapshot())).toBeNull()
})

test('a store that shows the connection alone is not called for events', async () => {
  const { shown, becomes } = subscribed({ identity: 'ada' }, false)
  const visit = await server.stream()
  visit.send(...hello())
  await becomes('Live')
  const before = shown.length
  const numbers = subscribed({ identity: 'ada' })
  for (const number of [1, 2, 3]) visit.send(...message(`e${number}`, number))
  await expect.poll(() => numbers.store.getSnapshot().events, { interval: 5 }).toHaveLength(3)
  expect(shown).toHaveLength(before)
  expect(server.visits()).toBe(1)
})

test('a store that is subscribed to again goes on at its cursor, although others have read on meanwhile', async () => {
  const options: StoreOptions = { keep: 0, initial: 0, reduce: (sum, { data }) => Number(sum) + Number(data) }
  const other = subscribed(options)
  const store = createStreamStore(server.url, { ...options, clock }, true)
  const leave = store.subscribe(() => undefined)
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await expect.poll(() => store.getSnapshot().value, { interval: 5 }).toBe(1)
  leave()
  visit.send(...message('e2', 2))
  await expect.poll(() => other.store.getSnapshot().value, { interval: 5 }).toBe(3)
  opened.push({ close: store.subscribe(() => undefined) })
  const again = await server.stream()
  expect(again.headers['last-event-id']).toBe('e1')
  again.send(...message('e2', 2))
  await expect.poll(() => store.getSnapshot().value, { interval: 5 }).toBe(3)
  // Both are at the same event, so one connection is enough.
  await again.gone
  visit.send(...message('e3', 3))
  await expect.poll(() => store.getSnapshot().value, { interval: 5 }).toBe(6)
  expect(other.store.getSnapshot().value).toBe(6)
  expect(server.visits()).toBe(2)
})

test('an onSync that is given later is called for the next gap, also when the store was left and subscribed to again', async () => {
  const { store } = subscribed()
  const visit = await server.stream()
  visit.send(...hello())
  visit.send(...message('e1', 1))
  await expect.poll(() => store.getSnapshot().events, { interval: 5 }).toHaveLength(1)
  const onSync = vi.fn()
  store.update({ clock, onSync })
  store.update({ clock, onSync })
  visit.send(...gap('e5'))
  await expect.poll(() => onSync.mock.calls, { interval: 5 }).toMatchObject([[{ reason: 'expired' }]])

  opened.pop()!.close()
  opened.push({ close: store.subscribe(() => undefined) })
  visit.send(...gap('e9'))
  await expect.poll(() => onSync.mock.calls, { interval: 5 }).toHaveLength(2)
})

test('an onSync that is given before the stream opens is called once for a gap', async () => {
  const { store } = subscribed()
  const onSync = vi.fn()
  store.update({ clock, onSync })
  const visit = await server.stream()
  visit.send(...hello())
  visit.send(...gap('e5'))
  visit.send(...message('e6', 1))
  await expect.poll(() => store.getSnapshot().events, { interval: 5 }).toHaveLength(1)
  expect(onSync).toHaveBeenCalledTimes(1)
})

test('a gap that nobody handles is still a warning on the console', async () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  const { store } = subscribed()
  store.update({ clock })
  const visit = await server.stream()
  visit.send(...hello())
  visit.send(...gap('e5'))
  visit.send(...message('e6', 1))
  await expect.poll(() => store.getSnapshot().events, { interval: 5 }).toHaveLength(1)
  expect(warn).toHaveBeenCalledWith('Rejoin:', 'Events are gone: add onSync.')
  warn.mockRestore()
})

function gap(id: string): string[] {
  return [`id: ${id}`, 'event: sync-required', 'data: {"reason":"expired","channels":["orders"]}']
}
