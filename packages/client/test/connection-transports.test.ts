import { describe, expect, test } from 'vitest'
import { machine } from './machine.ts'

describe('a transport', () => {
  test('on which twice no byte arrives gives way to the next, and the place is kept', () => {
    const { at, is, connected, opens } = machine({ cursor: 'mine', rungs: 2 })
    for (let attempt = 0; attempt < 2; attempt++) {
      expect(is().rung).toBe(0)
      connected()
      at(at() + 30_000)
      at(is().nextRetryAt!)
    }
    expect(opens.at(-1)).toMatchObject({ rung: 1, cursor: 'mine' })
  })

  test('that is cut three times at once gives way to the next', () => {
    const { at, is, tell, connected, greet } = machine({ rungs: 2 })
    for (let attempt = 0; attempt < 3; attempt++) {
      expect(is().rung).toBe(0)
      connected()
      greet()
      tell({ type: 'ended' })
      at(is().nextRetryAt!)
    }
    expect(is().rung).toBe(1)
  })

  test('is not blamed for a server that is down, busy or ends on purpose', () => {
    const { at, is, tell, connected } = machine({ rungs: 2 })
    const ends: (() => void)[] = [
      () => tell({ type: 'ended' }),
      () => tell({ type: 'answered', status: 503, isEventStream: false, retryAfterMs: 0 }),
      () => {
        connected()
        tell({ type: 'ended', reason: 'overloaded' })
      },
    ]
    for (const end of [...ends, ...ends, ...ends]) {
      end()
      at(is().nextRetryAt!)
    }
    expect(is()).toMatchObject({ rung: 0, doubts: 0 })
  })

  test('is not blamed for a server that sends an event and ends, as some do by design', () => {
    const { at, is, tell, connected } = machine({ rungs: 2 })
    for (let visit = 0; visit < 9; visit++) {
      connected()
      tell({ type: 'event', id: `${visit}` })
      tell({ type: 'ended' })
      at(is().nextRetryAt!)
    }
    expect(is().rung).toBe(0)
  })

  test('that the server does not have ends nothing: the first is used again', () => {
    const { at, is, tell } = degraded()
    tell({ type: 'answered', status: 404, isEventStream: false, retryAfterMs: 0 })
    expect(is().state).toBe('backoff')
    at(is().nextRetryAt!)
    expect(is().rung).toBe(0)
  })

  test('that cannot give what is asked for is passed over, and ends the stream when there is no other', () => {
    const choice = machine({ cursor: 'mine', rungs: 2 })
    choice.tell({ type: 'unusable' })
    expect(choice.is().state).toBe('backoff')
    choice.at(choice.is().nextRetryAt!)
    expect(choice.opens.at(-1)).toMatchObject({ rung: 1, cursor: 'mine' })

    const only = machine()
    only.tell({ type: 'unusable' })
    expect(only.is()).toMatchObject({ state: 'closed', closeReason: 'no-transport' })
  })

  test('that is better is tried again after half an hour, and left at the first sign that it is still barred', () => {
    const { at, is, tell, connected, greet } = degraded()
    const since = at()
    connected()
    greet({ heartbeatMs: 25_000 })
    while (at() < since + 1_795_000) {
      at(at() + 20_000)
      if (is().rung > 0) tell({ type: 'bytes' })
    }
    expect(is()).toMatchObject({ state: 'connecting', rung: 0 })
    connected()
    at(at() + 55_000)
    expect(is()).toMatchObject({ state: 'backoff', rung: 1 })
  })

  function degraded() {
    const driven = machine({ rungs: 2 })
    for (let attempt = 0; attempt < 3; attempt++) {
      driven.connected()
      driven.tell({ type: 'ended' })
      driven.at(driven.is().nextRetryAt!)
    }
    expect(driven.is().rung).toBe(1)
    return driven
  }
})
