import { describe, expect, test } from 'vitest'
import { machine } from '../support/machine.ts'

describe('a silent connection', () => {
  test('is dropped after two heartbeats and five seconds', () => {
    const { is, at, connected, greet } = machine()
    connected()
    greet({ heartbeatMs: 25_000 })
    at(54_999)
    expect(is().state).toBe('connected')
    at(55_000)
    expect(is()).toMatchObject({ state: 'backoff', attempt: 1 })
  })

  test('is replaced almost at once, as the silence was wait enough', () => {
    const { is, tell, at, connected, greet } = machine()
    connected()
    tell({ type: 'retry', ms: 20_000 })
    greet({ heartbeatMs: 25_000 })
    at(55_000)
    expect(is().nextRetryAt).toBe(55_100)
  })

  test('that is silent again and again is tried less and less often', () => {
    const { is, at, elapse, connected, greet } = machine()
    connected()
    greet({ heartbeatMs: 1000 })
    elapse(7000)
    at(is().nextRetryAt!)
    connected()
    greet({ heartbeatMs: 1000 })
    elapse(7000)
    expect(is().nextRetryAt! - at()).toBe(500 + 500)
  })

  test('counts from the last byte that arrived, and costs no timer per arrival', () => {
    const { is, tell, elapse, connected, greet, timers } = machine()
    connected()
    greet({ heartbeatMs: 1000 })
    const set = timers()
    for (let beat = 0; beat < 1000; beat++) {
      elapse(1)
      tell({ type: 'bytes' })
    }
    expect(timers()).toBe(set)
    elapse(6999)
    expect(is().state).toBe('connected')
    elapse(1)
    expect(is().state).toBe('backoff')
  })

  test('to a server that announces no heartbeat is kept', () => {
    const { is, tell, elapse, connected, timer } = machine()
    connected()
    tell({ type: 'event', id: '1' })
    elapse(86_400_000)
    expect(is().state).toBe('connected')
    expect(timer()).toBe(Infinity)
  })

  test('is kept while a handler keeps the client from reading', () => {
    const { is, tell, elapse, connected, greet } = machine()
    connected()
    greet({ heartbeatMs: 1000 })
    tell({ type: 'paused', paused: true })
    elapse(60_000)
    expect(is().state).toBe('connected')
    tell({ type: 'paused', paused: false })
    elapse(6999)
    expect(is().state).toBe('connected')
    elapse(1)
    expect(is().state).toBe('backoff')
  })

  test('is replaced, also when a handler kept the client from reading the connection before it', () => {
    const { is, tell, input, elapse, connected } = machine()
    connected()
    tell({ type: 'paused', paused: true })
    input({ type: 'connect' })
    elapse(30_000)
    expect(is().state).toBe('backoff')
  })

  test('with a heartbeat longer than any timer is kept until that heartbeat is overdue', () => {
    const { is, fire, connected, greet, timer } = machine()
    connected()
    greet({ heartbeatMs: 2 ** 40 })
    fire()
    expect(is().state).toBe('connected')
    expect(timer()).toBeGreaterThan(2 ** 40)
  })

  test('is noticed on waking from sleep, before its timer', () => {
    const { is, setClock, input, connected, greet, effects } = machine()
    connected()
    greet({ heartbeatMs: 25_000 })
    setClock(3_600_000)
    input({ type: 'wake' })
    expect(is()).toMatchObject({ state: 'connecting', generation: 2 })
    expect(effects.filter((effect) => effect === 'abort')).toHaveLength(1)
  })

  test('is noticed even when the clock was put back', () => {
    const { is, setClock, fire, connected, greet } = machine()
    connected()
    greet({ heartbeatMs: 1000 })
    setClock(-3_600_000)
    fire()
    expect(is().state).toBe('connected')
    setClock(-3_600_000 + 7000)
    fire()
    expect(is().state).toBe('backoff')
  })

  test('waking up leaves a healthy stream alone', () => {
    const { is, input, elapse, connected, greet } = machine()
    connected()
    greet({ heartbeatMs: 25_000 })
    elapse(20_000)
    input({ type: 'wake' })
    expect(is()).toMatchObject({ state: 'connected', generation: 1 })
  })
})

describe('a machine that nobody tells of its sleep, such as a worker,', () => {
  const sleeper = () => {
    const it = machine({ tickMs: 1000 })
    it.connected()
    it.greet({ heartbeatMs: 25_000 })
    return it
  }

  test('knows by a tick that is late that it was frozen, and does not trust the connection it had', () => {
    const { is, at, setClock, fire } = sleeper()
    at(10_000)
    setClock(13_001)
    fire()
    expect(is()).toMatchObject({ state: 'connecting', generation: 2 })
  })

  test('leaves a healthy stream alone when its ticks are a little late, or the clock is put back', () => {
    const { is, at, setClock, fire } = sleeper()
    at(10_000)
    setClock(12_900)
    fire()
    setClock(-3_600_000)
    fire()
    expect(is()).toMatchObject({ state: 'connected', generation: 1 })
  })

  test('knows that it was frozen also on a server without heartbeats', () => {
    const { is, at, setClock, fire, connected, tell } = machine({ tickMs: 1000 })
    connected()
    tell({ type: 'event', id: '1' })
    at(3_600_000)
    expect(is().generation).toBe(1)
    setClock(3_610_000)
    fire()
    expect(is().generation).toBe(2)
  })

  test('does not tick while it waits', () => {
    const { is, tell, timer } = sleeper()
    tell({ type: 'ended' })
    expect(timer()).toBe(is().nextRetryAt)
  })
})

describe('being stale', () => {
  test('is told when one heartbeat is overdue, and is over with the next byte', () => {
    const { is, at, tell, connected, greet, effects } = machine()
    connected()
    greet({ heartbeatMs: 25_000 })
    at(29_999)
    expect(is().stale).toBe(false)
    effects.length = 0
    at(30_000)
    expect(is()).toMatchObject({ state: 'connected', stale: true })
    expect(effects).toContain('notify')
    tell({ type: 'bytes' })
    expect(is().stale).toBe(false)
    at(59_999)
    expect(is()).toMatchObject({ state: 'connected', stale: false })
  })

  test('is told while a handler keeps the client from reading, and is over when the event was handled', () => {
    const { is, tell, elapse, connected, greet } = machine()
    connected()
    greet({ heartbeatMs: 1000 })
    tell({ type: 'paused', paused: true })
    elapse(5999)
    expect(is().stale).toBe(false)
    elapse(1)
    expect(is()).toMatchObject({ state: 'connected', stale: true })
    elapse(3_600_000)
    expect(is()).toMatchObject({ state: 'connected', generation: 1 })
    tell({ type: 'event', id: 'e1' })
    tell({ type: 'paused', paused: false })
    expect(is().stale).toBe(false)
  })

  test('is told after two minutes while a handler keeps the client from reading a server that announces no heartbeat', () => {
    const { is, tell, elapse, connected } = machine()
    connected()
    tell({ type: 'event', id: 'e1' })
    tell({ type: 'paused', paused: true })
    elapse(119_999)
    expect(is().stale).toBe(false)
    elapse(1)
    expect(is()).toMatchObject({ state: 'connected', stale: true })
  })

  test('because of a handler that takes too long is warned of, once per wait', () => {
    const { tell, elapse, connected, greet, effects } = machine()
    const warned = () => effects.filter((effect) => effect === 'warn').length
    connected()
    greet({ heartbeatMs: 1000 })
    for (const times of [1, 2]) {
      tell({ type: 'paused', paused: true })
      elapse(5999)
      expect(warned()).toBe(times - 1)
      elapse(1)
      expect(warned()).toBe(times)
      elapse(3_600_000)
      expect(warned()).toBe(times)
      tell({ type: 'paused', paused: false })
    }
  })

  test('because of a connection blames no handler', () => {
    const { is, input, tell, elapse, connected, greet, effects } = machine()
    connected()
    greet({ heartbeatMs: 1000 })
    elapse(6000)
    expect(is().stale).toBe(true)
    tell({ type: 'bytes' })
    tell({ type: 'paused', paused: true })
    input({ type: 'hide' })
    input({ type: 'wake' })
    expect(effects).not.toContain('warn')
  })

  test('lasts from a cut until the next connection has proved itself', () => {
    const { is, tell, at, connected, greet } = machine()
    expect(is().stale).toBe(false)
    connected()
    greet()
    tell({ type: 'ended' })
    at(is().nextRetryAt!)
    connected()
    tell({ type: 'bytes' })
    expect(is().stale).toBe(true)
    greet()
    expect(is().stale).toBe(false)
  })
})

describe('a hub that announced its heartbeat', () => {
  test('is given as long to answer the next time', () => {
    const { is, input, elapse, connected, greet } = machine()
    connected()
    greet({ heartbeatMs: 2_000 })
    input({ type: 'connect' })
    elapse(8_999)
    expect(is().state).toBe('connecting')
    elapse(1)
    expect(is().state).toBe('backoff')
  })

  test('is given two minutes at most, however long its heartbeat', () => {
    const { is, input, elapse, connected, greet } = machine()
    connected()
    greet({ heartbeatMs: 3_600_000 })
    input({ type: 'connect' })
    elapse(120_000)
    expect(is().state).toBe('backoff')
  })
})
