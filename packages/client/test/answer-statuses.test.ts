import { describe, expect, test } from 'vitest'
import { connect } from '../src/index.ts'
import { message } from './support/scripted-server.ts'
import { clock, retried, server, start, stateOf, useStage } from './support/stage.ts'

useStage()

describe('a server that rejects', () => {
  test('with 503 and Retry-After is left alone for that long', async () => {
    const { stream, events } = start()
    const first = await server.visit()
    first.answer(503, { 'retry-after': '7' })
    await stateOf(stream, 'backoff')
    clock.advance(6999)
    expect(stream.state).toMatchObject({ state: 'backoff', attempt: 1 })
    clock.advance(500)
    ;(await server.stream()).send(...message('e1'))
    await events.until(1)
    expect(server.visits()).toBe(2)
  })

  test.each([
    [204, 'finished'],
    [401, 'unauthorized'],
    [404, 'http-404'],
  ])('with %i ends the stream: %s', async (status, closeReason) => {
    const { stream } = start()
    ;(await server.visit()).answer(status)
    expect(await stateOf(stream, 'closed')).toMatchObject({ closeReason, nextRetryAt: null })
    expect(clock.timers()).toEqual([])
  })

  test('by sending a page instead of a stream ends it, and is not read', async () => {
    const { stream } = start()
    const first = await server.visit()
    first.answer(200, { 'content-type': 'text/html' })
    expect(await stateOf(stream, 'closed')).toMatchObject({ closeReason: 'wrong-content-type' })
    await first.gone
  })

  test('by sending a page where a stream was, as the login of a network does, is waited for', async () => {
    const { stream, events } = start()
    const first = await server.stream()
    first.send(...message('e1'))
    await events.until(1)
    first.cut()
    await retried(stream)
    const login = await server.visit()
    login.answer(200, { 'content-type': 'text/html' })
    login.write('<title>Welcome to our Wi-Fi</title>')
    await retried(stream)
    const second = await server.stream()
    expect(second.headers['last-event-id']).toBe('e1')
    second.send(...message('e2'))
    expect(await events.until(2)).toEqual(['e1', 'e2'])
  })

  test('to be reached is tried again', async () => {
    let failures = 2
    const { stream, events } = start({
      fetch: (...request) => (failures-- > 0 ? Promise.reject(new TypeError('fetch failed')) : fetch(...request)),
    })
    await retried(stream)
    await retried(stream)
    ;(await server.stream()).send(...message('e1'))
    await events.until(1)
  })

  test('to answer at all is given up after 30 s and asked again', async () => {
    const { stream } = start()
    const first = await server.visit()
    clock.advance(30_000)
    await first.gone
    await retried(stream)
    await server.visit()
  })

  test('to end an event ends the stream before it fills the memory', async () => {
    const { stream, events } = start()
    const first = await server.stream()
    first.send(...message('e1'))
    await events.until(1)
    first.write(`data: ${'x'.repeat(17 * 1024 * 1024)}`)
    expect(await stateOf(stream, 'closed')).toMatchObject({ closeReason: 'too-large', cursor: 'e1' })
  })
})

describe('options that cannot work are rejected at once', () => {
  test.each([
    ['a relative URL outside of a page', '/events/orders', {}],
    ['a cursor that is empty', 'http://hub/events', { from: '' }],
    ['a cursor that is too long', 'http://hub/events', { from: 'x'.repeat(8001) }],
    ['a wait that is no number', 'http://hub/events', { retryMs: Number.NaN }],
    ['a negative limit', 'http://hub/events', { maxRetryMs: -1 }],
  ])('%s', (_, url, options) => {
    expect(() => connect(url, options)).toThrow(expect.objectContaining({ code: 'invalid-option' }))
  })
})
