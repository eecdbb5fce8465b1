import { beforeEach, describe, expect, type MockInstance, test, vi } from 'vitest'
import type { Schema } from '../src/index.ts'
import { hello, message } from './support/scripted-server.ts'
import { clock, deferred, server, start, stateOf, useStage } from './support/stage.ts'

useStage()

const heartbeatMs = 1000
// The stream is stale, and says why, when a wait has lasted for this long.
const lateMs = heartbeatMs + 5000

let warn: MockInstance<typeof console.warn>
const warnings = () => warn.mock.calls.map((words) => words.join(' '))

beforeEach(() => {
  warn = vi.spyOn(console, 'warn').mockReturnValue()
})

describe('a promise that does not settle is named in one warning', () => {
  test('when it is that of onSync', async () => {
    const { stream } = start()
    const load = vi.fn(() => new Promise(() => undefined))
    stream.onSync(load)
    ;(await greeted()).send('event: sync-required', 'data: {}', 'id: s1')
    await called(load)
    clock.advance(lateMs - 1)
    expect(warnings()).toEqual([])
    clock.advance(1)
    expect(warnings()).toEqual(['Rejoin: Events wait for onSync.'])
    expect(stream.state).toMatchObject({ state: 'connected', stale: true })
    clock.advance(3_600_000)
    expect(warn).toHaveBeenCalledTimes(1)
  })

  test('when it is that of a loop', async () => {
    const { stream, events } = start()
    const iterator = stream[Symbol.asyncIterator]()
    const asked = iterator.next()
    ;(await greeted()).send(...message('e1'))
    await asked
    await events.until(1)
    clock.advance(3_600_000)
    expect(warnings()).toEqual(['Rejoin: Events wait for a loop.'])
  })

  test('when it is that of a schema', async () => {
    const validate = vi.fn(() => new Promise<never>(() => undefined))
    const shipped: Schema = { '~standard': { version: 1, validate } }
    start({ schemas: { shipped } })
    ;(await greeted()).send('event: shipped', 'data: 1', 'id: e1')
    await called(validate)
    clock.advance(3_600_000)
    expect(warnings()).toEqual(['Rejoin: Events wait for schemas.shipped.'])
  })

  test('when it is that of a loop, although a schema was waited for before', async () => {
    const validate = async (value: unknown) => ({ value })
    const { stream, events } = start({ schemas: { message: { '~standard': { version: 1, validate } } } })
    stream[Symbol.asyncIterator]()
    ;(await greeted()).send(...message('e1'))
    await events.until(1)
    clock.advance(lateMs)
    expect(warnings()).toEqual(['Rejoin: Events wait for a loop.'])
  })
})

test('a promise that is waited for on one connection after the other is warned of once', async () => {
  const { stream } = start()
  const load = vi.fn(() => new Promise(() => undefined))
  stream.onSync(load)
  ;(await greeted()).send('event: sync-required', 'data: {}', 'id: s1')
  await called(load)
  clock.advance(lateMs)
  stream.reconnect()
  await greeted()
  // As soon as the greeting is there, which has to wait, too.
  await stateOf(stream, 'connected')
  clock.advance(3_600_000)
  expect(stream.state).toMatchObject({ state: 'connected', stale: true })
  expect(warn).toHaveBeenCalledTimes(1)
})

test('each promise that takes too long is warned of', async () => {
  const { stream, events } = start()
  const reloads = [deferred(), deferred()]
  const load = vi.fn(() => reloads[load.mock.calls.length - 1]?.promise)
  stream.onSync(load)
  const visit = await greeted()
  for (const [index, reload] of reloads.entries()) {
    visit.send('event: sync-required', 'data: {}', `id: s${index}`)
    await called(load, index + 1)
    clock.advance(lateMs)
    expect(warn).toHaveBeenCalledTimes(index + 1)
    reload.resolve()
    visit.send(...message(`e${index}`))
    await events.until(index + 1)
  }
})

test('a promise is warned of also on a connection that has yet to prove itself', async () => {
  const { stream, events } = start()
  // A server that is no hub: the first event is the proof, once it has been handled.
  const first = await server.stream()
  first.send(...message('e1'))
  await events.until(1)
  stream[Symbol.asyncIterator]()
  first.end()
  await vi.waitFor(() => expect(stream.state.state).toBe('backoff'))
  clock.advance(stream.state.nextRetryAt! - clock.now())
  ;(await server.stream()).send(...message('e2'))
  await events.until(2)
  clock.advance(3_600_000)
  expect(warnings()).toEqual(['Rejoin: Events wait for a loop.'])
})

test('handlers that settle in time are not warned of', async () => {
  const { stream, events } = start()
  const reload = deferred()
  const load = vi.fn(() => reload.promise)
  stream.onSync(load)
  const visit = await greeted()
  visit.send('event: sync-required', 'data: {}', 'id: s1')
  await called(load)
  clock.advance(lateMs - 1)
  reload.resolve()
  visit.send(...message('e1'))
  await events.until(1)
  clock.advance(lateMs)
  expect(stream.state.stale).toBe(true)
  expect(warnings()).toEqual([])
})

test('a stream that is closed while a handler is waited for warns of nothing', async () => {
  const { stream } = start()
  const load = vi.fn(() => new Promise(() => undefined))
  stream.onSync(load)
  ;(await greeted()).send('event: sync-required', 'data: {}', 'id: s1')
  await called(load)
  stream.close()
  clock.advance(3_600_000)
  expect(warnings()).toEqual([])
})

function called(handler: MockInstance, times = 1): Promise<void> {
  return vi.waitFor(() => expect(handler).toHaveBeenCalledTimes(times), { interval: 5 })
}

/** A connection whose first bytes are the greeting. */
async function greeted() {
  const visit = await server.heldBack()
  visit.send(...hello({ heartbeatMs }, 'e0'))
  return visit
}
