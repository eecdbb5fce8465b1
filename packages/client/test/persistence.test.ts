import { expect, test, vi } from 'vitest'
import type { SyncRequired } from '../src/index.ts'
import { hello, message } from './support/scripted-server.ts'
import { clock, deferred, moved, retried, server, start, useStage } from './support/stage.ts'

useStage()

/** More than a promise takes that is resolved. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
}

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

test('of two users who share a tab, each continues at its own cursor', async () => {
  const kept = storage()
  const { stream: adas } = start({ persist: 'session', identity: 'ada' })
  ;(await server.stream()).send(...hello({}, 'e5'))
  await moved(adas, 'e5')
  adas.close()
  const { stream: bens } = start({ persist: 'session', identity: 'ben' })
  const second = await server.stream()
  expect(second.headers['last-event-id']).toBeUndefined()
  second.send(...hello({}, 'e9'))
  await moved(bens, 'e9')
  bens.close()
  start({ persist: 'session', identity: 'ada' })
  expect((await server.visit()).headers['last-event-id']).toBe('e5')
  expect([...kept.values()]).toEqual(['e5', 'e9'])
})

test('two streams of one URL that would save under the same key are reported', async () => {
  const kept = storage()
  const error = vi.spyOn(console, 'error').mockReturnValue()
  const { stream: older } = start({ persist: 'session' })
  const first = await server.stream()
  const { stream: newer } = start({ persist: 'session' })
  const second = await server.stream()
  second.send(...hello({}, 'e5'))
  await moved(newer, 'e5')
  // Not before the older one has something to save: it may be closed soon.
  expect(error).not.toHaveBeenCalled()
  for (const id of ['e7', 'e8']) {
    first.send(...hello({}, id))
    await moved(older, id)
  }
  expect(error).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: 'invalid-option' }))
  expect([...kept.values()]).toEqual(['e5'])
})

test('a stream that replaces another one, opened before that is closed, goes on from its cursor and saves it', async () => {
  const kept = storage()
  const error = vi.spyOn(console, 'error').mockReturnValue()
  const { stream: older } = start({ persist: 'session' })
  ;(await server.stream()).send(...hello({}, 'e5'))
  await moved(older, 'e5')
  const { stream: newer } = start({ persist: 'session' })
  const second = await server.stream()
  expect(second.headers['last-event-id']).toBe('e5')
  older.close()
  second.send(...message('e6'))
  await moved(newer, 'e6')
  expect([...kept.values()]).toEqual(['e6'])
  expect(error).not.toHaveBeenCalled()
})

test('a handler that settles after its stream was replaced is no second stream', async () => {
  const kept = storage()
  const error = vi.spyOn(console, 'error').mockReturnValue()
  const work = deferred()
  const { stream: older, events } = start({ persist: 'session' })
  older.on('message', () => work.promise)
  ;(await server.stream()).send(...message('e5'))
  await events.until(1)
  older.close()
  const { stream: newer } = start({ persist: 'session' })
  ;(await server.stream()).send(...hello({}, 'e7'))
  await moved(newer, 'e7')
  work.resolve()
  await turns()
  expect([...kept.values()]).toEqual(['e7'])
  expect(error).not.toHaveBeenCalled()
})

test('a cursor is saved after the handlers have run, so that a page left in between gets the event again', async () => {
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

test('a cursor is saved when the oldest handler that waits has settled, also when it rejects', async () => {
  const error = vi.spyOn(console, 'error').mockReturnValue()
  const saved: unknown[] = []
  const { stream, events } = start({ persist: { load: () => null, save: (cursor) => saved.push(cursor) } })
  const work = [deferred(), deferred(), deferred()]
  stream.on('message', async ({ id }) => {
    await work[Number(id.slice(1)) - 1]?.promise
    if (id === 'e1') throw new Error('mine')
  })
  const visit = await server.stream()
  visit.send(...hello({}, 'e0'))
  for (const id of ['e1', 'e2', 'e3']) visit.send(...message(id))
  await events.until(3)
  work[1]?.resolve()
  await turns()
  expect(saved).toEqual(['e0'])
  work[0]?.resolve()
  await turns()
  expect(saved).toEqual(['e0', 'e2'])
  expect(error).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ message: 'mine' }))
  work[2]?.resolve()
  await turns()
  expect(saved).toEqual(['e0', 'e2', 'e3'])
})

test('a connection that is replaced while a handler waits requests the events after the one in the handler', async () => {
  const saved: unknown[] = []
  const { stream, events } = start({ persist: { load: () => null, save: (cursor) => saved.push(cursor) } })
  stream.on('message', () => new Promise(() => undefined))
  const first = await server.stream()
  first.send(...hello({}, 'e0'))
  first.send(...message('e1'))
  await events.until(1)
  first.cut()
  await retried(stream)
  expect((await server.visit()).headers['last-event-id']).toBe('e1')
  expect(saved).toEqual(['e0'])
})

test('saves of a slow store do not overlap, and the latest cursor is the one that lasts', async () => {
  const started: unknown[] = []
  const ends = [deferred(), deferred()]
  const save = (cursor: string | null) => {
    started.push(cursor)
    return ends[started.length - 1]?.promise
  }
  const { events } = start({ persist: { load: () => null, save } })
  const visit = await server.stream()
  for (let n = 1; n <= 5; n++) {
    visit.send(...message(`e${n}`))
    await events.until(n)
  }
  await turns()
  expect(started).toEqual(['e1'])
  ends[0]?.resolve()
  await turns()
  expect(started).toEqual(['e1', 'e5'])
  ends[1]?.resolve()
  await turns()
  expect(started).toEqual(['e1', 'e5'])
})

test('a save that never settles is reported and does not hold up the next; the latest cursor lasts', async () => {
  const error = vi.spyOn(console, 'error').mockReturnValue()
  const started: unknown[] = []
  const never = deferred()
  const save = (cursor: string | null) => {
    started.push(cursor)
    return cursor === 'e1' ? never.promise : undefined
  }
  const { events } = start({ persist: { load: () => null, save } })
  const visit = await server.stream()
  for (let n = 1; n <= 3; n++) {
    visit.send(...message(`e${n}`))
    await events.until(n)
  }
  clock.advance(9999)
  await turns()
  expect(started).toEqual(['e1'])
  clock.advance(1)
  await turns()
  expect(started).toEqual(['e1', 'e3'])
  expect(error).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: 'invalid-option' }))
  // It settles after all, and may have put its older cursor there.
  never.resolve()
  await turns()
  expect(started).toEqual(['e1', 'e3', 'e3'])
})

test('a store that is full is reported once, and again when it had room in between', async () => {
  const error = vi.spyOn(console, 'error').mockReturnValue()
  const full = new Set(['e1', 'e2', 'e3', 'e5'])
  const save = (cursor: string | null) => {
    if (full.has(cursor ?? '')) throw new Error(`no room for ${cursor}`)
  }
  const { events } = start({ persist: { load: () => null, save } })
  const visit = await server.stream()
  for (let n = 1; n <= 5; n++) {
    visit.send(...message(`e${n}`))
    await events.until(n)
    await turns()
  }
  expect(error.mock.calls.map(([reported]) => reported.message)).toEqual(['no room for e1', 'no room for e5'])
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
  expect(stream.state).toMatchObject({ state: 'connecting', nextRetryAt: null })
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

const unreadable: [string, () => string | Promise<string>][] = [
  [
    'throws',
    () => {
      throw new Error('forbidden')
    },
  ],
  ['rejects', () => Promise.reject(new Error('forbidden'))],
  ['gives more text than any cursor has', () => 'x'.repeat(8001)],
  ['gives a number', () => 4 as never],
]

test.each(unreadable)('the hub is asked to announce a gap when the store %s (§4.6)', async (_, load) => {
  const error = vi.spyOn(console, 'error').mockReturnValue()
  const saved: unknown[] = []
  const { stream, events } = start({ persist: { load, save: (cursor) => saved.push(cursor) } })
  const told = deferred<SyncRequired>()
  const reload = deferred()
  stream.onSync((gap) => {
    told.resolve(gap)
    return reload.promise
  })
  const second = await askedAsLost()
  second.send(...hello({ requested: 'lost' }))
  second.send('id: e6', 'event: sync-required', 'data: {"reason":"unknown-id"}')
  second.send(...message('e7'))
  expect(await told.promise).toMatchObject({ reason: 'unknown-id', latest: 'e6' })
  // A page that is left now is told again.
  expect(saved.filter((cursor) => cursor !== 'lost')).toEqual([])
  reload.resolve()
  expect(await events.until(1)).toEqual(['e7'])
  await expect.poll(() => saved.at(-1)).toBe('e7')
  expect(error.mock.calls.length).toBeLessThanOrEqual(1)
})

test('a load that never settles is reported, and the stream goes on after 10 s as after one that failed', async () => {
  const error = vi.spyOn(console, 'error').mockReturnValue()
  const load = vi.fn(() => new Promise<string>(() => undefined))
  start({ persist: { load, save: () => undefined } })
  await expect.poll(() => load.mock.calls.length).toBe(1)
  clock.advance(9999)
  expect(error).not.toHaveBeenCalled()
  clock.advance(1)
  const advice = { code: 'invalid-option', message: expect.stringContaining('persist.load takes over 10 s') }
  expect(error).toHaveBeenCalledExactlyOnceWith(expect.objectContaining(advice))
  await askedAsLost()
})

test('a server that is no hub is never asked to announce a gap when the store fails', async () => {
  vi.spyOn(console, 'error').mockReturnValue()
  const load = () => Promise.reject(new Error('forbidden'))
  const { stream, events } = start({ persist: { load, save: () => undefined } })
  for (const id of ['e1', 'e2']) {
    const visit = await server.stream()
    expect(visit.headers['last-event-id']).toBe(id === 'e1' ? undefined : 'e1')
    visit.send(...message(id))
    await events.until(id === 'e1' ? 1 : 2)
    visit.end()
    await retried(stream)
  }
  expect(events.data()).toEqual(['e1', 'e2'])
})

test('a stream that is given a cursor uses it when its store fails', async () => {
  vi.spyOn(console, 'error').mockReturnValue()
  const load = () => Promise.reject(new Error('forbidden'))
  start({ persist: { load, save: () => undefined }, from: 'e1' })
  expect((await server.visit()).headers['last-event-id']).toBe('e1')
})

test('a store that is empty is a first visit, of which nothing is told', async () => {
  const sync = vi.fn()
  for (const nothing of [null, undefined, '']) {
    const { stream, events } = start({ persist: { load: () => nothing, save: () => undefined } })
    stream.onSync(sync)
    const visit = await server.stream()
    visit.send(...hello({}, 'e6'))
    visit.send(...message('e7'))
    await events.until(1)
  }
  expect(sync).not.toHaveBeenCalled()
})

test('a stored text that is no id is not sent', async () => {
  storage().set(`rejoin:${server.url}`, 'x'.repeat(8001))
  start({ persist: 'session' })
  await askedAsLost()
})

test('a cursor that the server cleared is removed from the store', async () => {
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

/** The hub is asked with a cursor that no hub knows, so that it answers with `unknown-id`; first it has to be one. */
async function askedAsLost() {
  const first = await server.stream()
  expect(first.headers['last-event-id']).toBeUndefined()
  first.send(...hello({}, 'e5'))
  const second = await server.stream()
  expect(second.headers['last-event-id']).toBe('lost')
  return second
}
