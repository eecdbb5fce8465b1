import { describe, expect, test } from 'vitest'
import type { Report } from '../../src/connection-input.ts'
import { machine } from '../support/machine.ts'

describe('opening', () => {
  test('a first connection sends no cursor', () => {
    const { opens } = machine()
    expect(opens).toMatchObject([{ generation: 1, cursor: null }])
    expect(opens[0]?.inQuery).toBeFalsy()
  })

  test('a stream that is given a cursor asks for it from the start', () => {
    expect(machine({ cursor: 'a' }).opens.at(-1)).toMatchObject({ cursor: 'a' })
  })

  test('a server that does not answer is given up after 30 s', () => {
    const { at, is, effects } = machine()
    at(29_999)
    expect(is().state).toBe('connecting')
    at(30_000)
    expect(is().state).toBe('backoff')
    expect(effects).toContain('abort')
  })

  test('a server that answers and then says nothing is given up after 30 s', () => {
    const { at, is, connected } = machine()
    at(10_000)
    connected()
    at(39_999)
    expect(is().state).toBe('connecting')
    at(40_000)
    expect(is().state).toBe('backoff')
  })

  test('is over with the first byte of the body: what a proxy holds back is not connected', () => {
    const { is, connected, tell, effects } = machine()
    connected()
    expect(is().state).toBe('connecting')
    tell({ type: 'bytes' })
    expect(is().state).toBe('connected')
    expect(effects).toContain('notify')
  })

  test('is over with the head of a server that is known not to greet, as it may be quiet for ever', () => {
    const { is, connected, tell, elapse } = machine()
    connected()
    tell({ type: 'event', id: null })
    tell({ type: 'ended' })
    elapse(1000)
    connected()
    expect(is()).toMatchObject({ state: 'connected', generation: 2 })
  })
})

describe('a connection that was given up', () => {
  test('changes nothing any more, whatever it reports', () => {
    const { is, input, connected, effects } = machine()
    connected()
    input({ type: 'connect' })
    const before = is()
    const done = effects.length
    const late: Report[] = [
      { type: 'answered', status: 401, isStream: false, retryAfterMs: 0 },
      { type: 'bytes' },
      { type: 'event', id: 'late' },
      { type: 'hello', id: 'late', hello: { requested: null, heartbeatMs: 1 } },
      { type: 'ended' },
      { type: 'ended', reason: 'too-large' },
    ]
    for (const report of late) input(report, 1)
    expect(is()).toEqual(before)
    expect(effects).toHaveLength(done)
  })

  test('is let go before the next one is opened', () => {
    const { input, effects } = machine()
    input({ type: 'connect' })
    expect(effects).toEqual(['abort', 'open'])
  })
})

describe('closing', () => {
  test('ends the connection and its timer, and nothing starts again', () => {
    const { is, input, timer, connected, greet, effects } = machine()
    connected()
    greet()
    input({ type: 'close' })
    expect(is()).toMatchObject({ state: 'closed', closeReason: 'closed' })
    expect(timer()).toBe(Infinity)
    effects.length = 0
    for (const type of ['wake', 'connect', 'timer', 'close'] as const) input({ type })
    expect(effects).toEqual([])
  })

  test('while waiting ends the wait', () => {
    const { is, input, tell, timer } = machine()
    tell({ type: 'ended' })
    input({ type: 'close' })
    expect(is()).toMatchObject({ state: 'closed', nextRetryAt: null })
    expect(timer()).toBe(Infinity)
  })
})

describe('a page that is hidden', () => {
  test('has no connection and no timer until it is seen, when that was asked for', () => {
    const { is, input, timer, connected, greet, effects } = machine()
    connected()
    greet()
    input({ type: 'hide' })
    expect(is()).toMatchObject({ state: 'backoff', nextRetryAt: null, attempt: 0 })
    expect(effects).toContain('abort')
    expect(timer()).toBe(Infinity)
    input({ type: 'wake' })
    expect(is().state).toBe('connecting')
  })

  test('comes back when the server has said, also when it is seen before that', () => {
    const { is, input, tell, at } = machine()
    tell({ type: 'answered', status: 503, isStream: false, retryAfterMs: 20_000 })
    input({ type: 'hide' })
    at(5000)
    input({ type: 'wake' })
    expect(is()).toMatchObject({ state: 'backoff', nextRetryAt: 20_000 })
    at(20_000)
    expect(is().state).toBe('connecting')
  })

  test('has no timer either when it was waiting for a retry', () => {
    const { input, tell, timer } = machine()
    tell({ type: 'ended' })
    input({ type: 'hide' })
    expect(timer()).toBe(Infinity)
  })
})

test('the user is told of a change of state, and not of every event', () => {
  const { tell, connected, greet, effects, elapse } = machine()
  connected()
  greet()
  effects.length = 0
  for (let id = 1; id <= 100; id++) tell({ type: 'event', id: `${id}` })
  expect(effects).toEqual([])
  elapse(1000)
  tell({ type: 'ended' })
  expect(effects.filter((effect) => effect === 'notify')).toHaveLength(1)
})
