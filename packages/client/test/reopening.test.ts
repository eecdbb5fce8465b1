import { getEventListeners } from 'node:events'
import { expect, test, vi } from 'vitest'
import { connect, RejoinError } from '../src/index.ts'
import { message } from './support/scripted-server.ts'
import { clock, opened, page, server, start, stateOf, useStage } from './support/stage.ts'

useStage()

test('a stream that a server closed opens again from its cursor, with all its handlers', async () => {
  const { stream, events } = start()
  const states: string[] = []
  stream.onState(({ state, closeReason }) => states.push(closeReason ?? state))
  const first = await server.stream()
  first.send(...message('e1'))
  await events.until(1)
  first.cut()
  const { nextRetryAt } = await stateOf(stream, 'backoff')
  clock.advance((nextRetryAt ?? 0) - clock.now())
  ;(await server.visit()).answer(401)
  await stateOf(stream, 'closed')

  stream.reconnect()
  const again = await server.stream()
  expect(again.headers['last-event-id']).toBe('e1')
  again.send(...message('e2'))
  expect(await events.until(2)).toEqual(['e1', 'e2'])
  expect(stream.state).toMatchObject({ state: 'connected', closeReason: null })
  expect(states.slice(states.indexOf('unauthorized')).slice(0, 3)).toEqual(['unauthorized', 'connecting', 'connected'])
})

test('a stream that was opened again hears of its page again', async () => {
  const { window } = page()
  const { stream } = start()
  ;(await server.visit()).answer(404)
  await stateOf(stream, 'closed')
  stream.reconnect()
  ;(await server.visit()).cut()
  await stateOf(stream, 'backoff')
  window.dispatchEvent(new Event('online'))
  await server.visit()
})

test('a stream that its owner closed stays closed', async () => {
  const { stream } = start()
  await server.stream()
  stream.close()
  stream.reconnect()
  expect(stream.state).toMatchObject({ state: 'closed', closeReason: 'closed' })
  expect(server.visits()).toBe(1)
})

test('a signal closes the stream, and is let go of', async () => {
  const controller = new AbortController()
  const { signal } = controller
  const { stream, events } = start({ signal })
  const visit = await server.stream()
  visit.send(...message('e1'))
  await events.until(1)
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  controller.abort()
  expect(stream.state).toMatchObject({ state: 'closed', closeReason: 'closed', cursor: 'e1' })
  expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  await visit.gone
  stream.reconnect()
  expect(stream.state.state).toBe('closed')
})

test('a signal that is aborted already leaves nothing to connect', async () => {
  const { stream } = start({ signal: AbortSignal.abort() })
  expect(stream.state.closeReason).toBe('closed')
  expect(server.visits()).toBe(0)
})

test('a signal that is aborted while the stream is closed keeps it closed', async () => {
  const controller = new AbortController()
  const { stream } = start({ signal: controller.signal })
  ;(await server.visit()).answer(404)
  await stateOf(stream, 'closed')
  controller.abort()
  stream.reconnect()
  expect(stream.state.state).toBe('closed')
  expect(server.visits()).toBe(1)
})

test('an option that does not exist is reported in development, and the stream goes on', async () => {
  const error = vi.spyOn(console, 'error').mockReturnValue()
  const { events } = start({ retriesMax: 3, pareses: undefined } as object)
  ;(await server.stream()).send(...message('e1'))
  await events.until(1)
  await expect.poll(() => error.mock.calls.length).toBe(2)
  const [reported] = error.mock.calls.map(([value]) => value as RejoinError)
  expect(reported).toBeInstanceOf(RejoinError)
  expect(reported).toMatchObject({ code: 'invalid-option', message: expect.stringMatching(/^retriesMax is no option/) })
})

test('in production, options are taken as they come', async () => {
  vi.stubEnv('NODE_ENV', 'production')
  const error = vi.spyOn(console, 'error').mockReturnValue()
  opened.push(connect(server.url, { clock, retriesMax: 3 } as object))
  const visit = await server.stream()
  vi.unstubAllEnvs()
  visit.send(...message('e1'))
  await vi.dynamicImportSettled()
  expect(error).not.toHaveBeenCalled()
})
