import { describe, expect, test } from 'vitest'
import { machine } from '../support/machine.ts'

describe('a transport', () => {
  test('on which nothing ever arrives after the head gives way to the next, and the cursor is kept', () => {
    const { at, is, connected, opens } = machine({ cursor: 'mine', tiers: 2 })
    connected()
    at(30_000)
    at(is().nextRetryAt!)
    expect(opens.at(-1)).toMatchObject({ tier: 1, cursor: 'mine' })
  })

  test('that was good, and on which then twice no byte arrives, gives way to the next, and the cursor is kept', () => {
    const { at, is, connected, greet, tell, opens } = machine({ cursor: 'mine', tiers: 2 })
    connected()
    greet({ requested: 'mine', heartbeatMs: 12_500 })
    at(5000)
    tell({ type: 'ended' })
    at(is().nextRetryAt!)
    for (let attempt = 0; attempt < 2; attempt++) {
      expect(is().tier).toBe(0)
      connected()
      at(at() + 30_000)
      at(is().nextRetryAt!)
    }
    expect(opens.at(-1)).toMatchObject({ tier: 1, cursor: 'mine' })
  })

  test('that is cut three times at once gives way to the next', () => {
    const { at, is, tell, connected, greet } = machine({ tiers: 2 })
    for (let attempt = 0; attempt < 3; attempt++) {
      expect(is().tier).toBe(0)
      connected()
      greet()
      tell({ type: 'ended' })
      at(is().nextRetryAt!)
    }
    expect(is().tier).toBe(1)
  })

  test.each<[string, (driven: ReturnType<typeof machine>) => void]>([
    ['cannot be reached', ({ tell }) => tell({ type: 'ended' })],
    ['is unwell', ({ tell }) => tell({ type: 'answered', status: 502, isStream: false, retryAfterMs: 0 })],
    [
      'keeps a stream for a while',
      ({ connected, greet, elapse, tell }) => {
        connected()
        greet()
        elapse(1500)
        tell({ type: 'ended' })
      },
    ],
  ])('is not blamed for streams that are cut by a server which in between %s', (_, happen) => {
    const driven = machine({ tiers: 2 })
    const { at, is, tell, connected, greet } = driven
    for (let restart = 0; restart < 20; restart++) {
      for (let cut = 0; cut < 2; cut++) {
        connected()
        greet()
        tell({ type: 'ended' })
        at(is().nextRetryAt!)
      }
      happen(driven)
      at(is().nextRetryAt!)
      expect(is().tier).toBe(0)
    }
  })

  test('is not blamed for a server that is down, busy or ends on purpose', () => {
    const { at, is, tell, connected } = machine({ tiers: 2 })
    const ends: (() => void)[] = [
      () => tell({ type: 'ended' }),
      () => tell({ type: 'answered', status: 503, isStream: false, retryAfterMs: 0 }),
      () => {
        connected()
        tell({ type: 'ended', reason: 'overloaded' })
      },
    ]
    for (const end of [...ends, ...ends, ...ends]) {
      end()
      at(is().nextRetryAt!)
    }
    expect(is()).toMatchObject({ tier: 0, faults: 0 })
  })

  test('is not blamed for a server that sends an event and ends, as some do by design', () => {
    const { at, is, tell, connected } = machine({ tiers: 2 })
    for (let visit = 0; visit < 9; visit++) {
      connected()
      tell({ type: 'event', id: `${visit}` })
      tell({ type: 'ended' })
      at(is().nextRetryAt!)
    }
    expect(is().tier).toBe(0)
  })

  test('that the server does not have ends nothing: the first is used again', () => {
    const { at, is, tell } = degraded()
    tell({ type: 'answered', status: 404, isStream: false, retryAfterMs: 0, isElsewhere: true })
    expect(is().state).toBe('backoff')
    at(is().nextRetryAt!)
    expect(is().tier).toBe(0)
  })

  test('that cannot give what is asked for is passed over, and ends the stream when there is no other', () => {
    const choice = machine({ cursor: 'mine', tiers: 2 })
    choice.tell({ type: 'unusable' })
    expect(choice.is().state).toBe('backoff')
    choice.at(choice.is().nextRetryAt!)
    expect(choice.opens.at(-1)).toMatchObject({ tier: 1, cursor: 'mine' })

    const only = machine()
    only.tell({ type: 'unusable' })
    expect(only.is()).toMatchObject({ state: 'closed', closeReason: 'no-transport' })
  })

  test('that may only have met a server being restarted is tried again after a minute, and kept when it is good', () => {
    const { at, is, connected, greet, tell } = degraded()
    expect(poll()).toBeCloseTo(60_000, -4)
    connected()
    greet()
    at(at() + 6000)
    tell({ type: 'bytes' })
    expect(is()).toMatchObject({ state: 'connected', tier: 0, faults: 0, upgradeAt: Infinity })

    function poll() {
      return polledFor({ at, is, connected, greet, tell })
    }
  })

  test('that is still barred then is left at the first sign of it, for half an hour', () => {
    const driven = degraded()
    const { at, is, tell, connected } = driven
    polledFor(driven)
    connected()
    tell({ type: 'ended' })
    expect(is().tier).toBe(1)
    at(is().nextRetryAt!)
    expect(polledFor(driven)).toBeCloseTo(1_800_000, -5)
  })

  test('on which streams open and say nothing is tried again after half an hour, as each try costs a silence', () => {
    const driven = machine({ tiers: 2 })
    driven.connected()
    driven.greet({ heartbeatMs: 12_500 })
    driven.elapse(5000)
    driven.tell({ type: 'ended' })
    driven.at(driven.is().nextRetryAt!)
    for (let attempt = 0; attempt < 2; attempt++) {
      driven.connected()
      driven.elapse(30_000)
      driven.at(driven.is().nextRetryAt!)
    }
    expect(polledFor(driven)).toBeCloseTo(1_800_000, -5)
  })

  test('into which requests vanish is tried again after a minute, as the network may have been gone', () => {
    const driven = machine({ tiers: 2 })
    for (let attempt = 0; attempt < 2; attempt++) {
      driven.elapse(30_000)
      driven.at(driven.is().nextRetryAt!)
    }
    expect(polledFor(driven)).toBeCloseTo(60_000, -4)
  })

  /** Lets the second transport be good until the first is tried again, and tells how long that took. */
  function polledFor({
    at,
    is,
    connected,
    greet,
    tell,
  }: Pick<ReturnType<typeof machine>, 'at' | 'is' | 'connected' | 'greet' | 'tell'>) {
    expect(is().tier).toBe(1)
    const since = at()
    connected()
    greet({ heartbeatMs: 25_000 })
    while (is().tier > 0) {
      at(at() + 1000)
      if (is().tier > 0) tell({ type: 'bytes' })
    }
    expect(is().state).toBe('connecting')
    return at() - since
  }

  function degraded() {
    const driven = machine({ tiers: 2 })
    for (let attempt = 0; attempt < 3; attempt++) {
      driven.connected()
      driven.tell({ type: 'ended' })
      driven.at(driven.is().nextRetryAt!)
    }
    expect(driven.is().tier).toBe(1)
    return driven
  }

  test('that the browser gives up on leads to the next at once, which can see why', () => {
    const { at, is, tell } = machine({ tiers: 2 })
    tell({ type: 'ended', against: 3 })
    expect(is()).toMatchObject({ state: 'backoff', tier: 1 })
    at(is().nextRetryAt!)
    tell({ type: 'answered', status: 404, isStream: false, retryAfterMs: 0 })
    expect(is()).toMatchObject({ state: 'closed', closeReason: 'http-404' })
  })

  test('that never opens leads to the next after three attempts', () => {
    const { at, is, tell } = machine({ tiers: 2 })
    const tiers = [1, 2, 3].map(() => {
      tell({ type: 'ended', against: 1 })
      at(is().nextRetryAt!)
      return is().tier
    })
    expect(tiers).toEqual([0, 0, 1])
  })

  test('that is the only one is tried again, whatever speaks against it', () => {
    const { at, is, tell } = machine()
    for (let time = 0; time < 5; time++) {
      tell({ type: 'ended', against: 3 })
      at(is().nextRetryAt!)
    }
    expect(is()).toMatchObject({ state: 'connecting', tier: 0 })
  })
})
