import { describe, expect, test } from 'vitest'
import { machine } from '../support/machine.ts'

describe('a status', () => {
  test.each([
    [204, 'finished'],
    [401, 'unauthorized'],
    [400, 'http-400'],
    [403, 'http-403'],
    [404, 'http-404'],
    [410, 'http-410'],
  ])('%i ends the stream: %s', (status, closeReason) => {
    const { is, tell, timer } = machine()
    tell({ type: 'answered', status, isStream: false, retryAfterMs: 0 })
    expect(is()).toMatchObject({ state: 'closed', closeReason })
    expect(timer()).toBe(Infinity)
  })

  test('200 with another content type ends the stream', () => {
    const { is, tell } = machine()
    tell({ type: 'answered', status: 200, isStream: false, retryAfterMs: 0 })
    expect(is()).toMatchObject({ state: 'closed', closeReason: 'wrong-content-type' })
  })

  test.each([408, 425, 429, 500, 502, 503, 504])('%i is retried', (status) => {
    const { is, tell } = machine()
    tell({ type: 'answered', status, isStream: false, retryAfterMs: 0 })
    expect(is()).toMatchObject({ state: 'backoff', attempt: 1 })
  })

  test('with Retry-After is retried then and not before, even when the network comes back', () => {
    const { is, tell, at, input } = machine()
    tell({ type: 'answered', status: 503, isStream: false, retryAfterMs: 20_000 })
    expect(is().nextRetryAt).toBe(20_250)
    at(19_999)
    input({ type: 'wake' })
    expect(is().state).toBe('backoff')
    at(20_000)
    input({ type: 'wake' })
    expect(is().state).toBe('connecting')
  })

  test('with a Retry-After over the longest wait of the client is retried then, and not before', () => {
    const { is, tell, setClock, input } = machine()
    tell({ type: 'answered', status: 503, isStream: false, retryAfterMs: 60_000 })
    expect(is().nextRetryAt).toBe(60_000 + 250)
    setClock(59_999)
    input({ type: 'wake' })
    expect(is().state).toBe('backoff')
  })

  test('with a Retry-After of a day is asked again after ten minutes', () => {
    const { is, tell, setClock, input } = machine()
    tell({ type: 'answered', status: 503, isStream: false, retryAfterMs: 86_400_000 })
    expect(is().nextRetryAt).toBe(600_000 + 250)
    setClock(600_000)
    input({ type: 'wake' })
    expect(is().state).toBe('connecting')
  })

  test('with one Retry-After for all readers of a hub does not bring them back in one instant', () => {
    const { is, tell, at, input, connected, greet } = machine()
    connected()
    tell({ type: 'retry', ms: 2000 })
    greet()
    at(10_000)
    input({ type: 'connect' })
    tell({ type: 'answered', status: 503, isStream: false, retryAfterMs: 20_000 })
    expect(is().nextRetryAt).toBe(10_000 + 20_000 + 1000)
  })

  test('with Retry-After shows as overload while it is waited for', () => {
    const { is, at, tell } = machine()
    tell({ type: 'answered', status: 503, isStream: false, retryAfterMs: 2000 })
    expect(is().closeReason).toBe('overloaded')
    at(is().nextRetryAt!)
    expect(is().closeReason).toBeNull()
  })

  test('asks for Retry-After once: the next failure waits as any other', () => {
    const { is, tell, at } = machine()
    tell({ type: 'answered', status: 503, isStream: false, retryAfterMs: 20_000 })
    at(20_250)
    tell({ type: 'ended' })
    expect(is().nextRetryAt).toBe(20_250 + 500 + 500)
  })
})

describe('a page where a stream should be', () => {
  const page = { type: 'answered', status: 200, isStream: false, retryAfterMs: 0 } as const

  test('ends a stream that never was', () => {
    const { is, tell } = machine()
    tell(page)
    expect(is()).toMatchObject({ state: 'closed', closeReason: 'wrong-content-type' })
  })

  test.each([0, 1])(
    'is a reason to wait, on transport %i, where there has been a stream: a network wants a login',
    (tier) => {
      const { is, at, tell, greet, connected } = machine({ tiers: 2 })
      connected()
      greet()
      tell({ type: 'ended', reason: 'drain' })
      at(is().nextRetryAt!)
      if (tier) tell({ type: 'unusable' })
      for (let login = 0; login < 5; login++) {
        at(is().nextRetryAt ?? at())
        expect(is()).toMatchObject({ state: 'connecting', tier })
        tell(page)
        expect(is().state).toBe('backoff')
      }
      at(is().nextRetryAt!)
      connected()
      greet()
      expect(is()).toMatchObject({ state: 'connected', stale: false })
    },
  )
})

describe('401', () => {
  const rejection = { type: 'answered', status: 401, isStream: false, retryAfterMs: 0 } as const

  test('is answered with other credentials, once', () => {
    const { is, tell, opens } = machine({ canRefresh: true })
    tell(rejection)
    expect(opens.at(-1)).toMatchObject({ generation: 2, refresh: true })
    tell(rejection)
    expect(is()).toMatchObject({ state: 'closed', closeReason: 'unauthorized' })
  })

  test('is answered again after a connection that was accepted', () => {
    const { is, at, tell, connected } = machine({ canRefresh: true })
    tell(rejection)
    connected()
    tell({ type: 'ended' })
    at(is().nextRetryAt!)
    tell(rejection)
    expect(is()).toMatchObject({ state: 'connecting', refresh: true })
  })

  test('ends the stream when nobody can be asked for others', () => {
    const { is, tell } = machine()
    tell(rejection)
    expect(is()).toMatchObject({ state: 'closed', closeReason: 'unauthorized' })
  })
})

describe('rights that expire (§4.4)', () => {
  test('are renewed before they expire, once for each connection, and the stream resumes from its cursor', () => {
    const { is, at, tell, connected, greet, opens, effects } = machine({ canRefresh: true })
    const asked = () => effects.filter((effect) => effect === 'renew').length
    connected()
    greet({ expiresInMs: 100_000, heartbeatMs: 3_600_000 })
    tell({ type: 'event', id: 'e1' })
    at(89_999)
    expect(asked()).toBe(0)
    at(90_000)
    expect(asked()).toBe(1)
    // The stream goes on while they are asked for.
    at(95_000)
    tell({ type: 'event', id: 'e2' })
    expect(is()).toMatchObject({ state: 'connected', generation: 1 })
    const headers = new Headers()
    tell({ type: 'renewed', headers })
    expect(opens.at(-1)).toMatchObject({ generation: 2, refresh: true, cursor: 'e2', attempt: 0 })
    expect(opens.at(-1)?.renewed).toBe(headers)
    connected()
    greet({ requested: 'e2', heartbeatMs: 3_600_000 })
    at(3_600_000)
    expect(is()).toMatchObject({ state: 'connected', generation: 2, refresh: false })
    expect(asked()).toBe(1)
  })

  test('are asked for again when the connection is lost during a renewal, and credentials that come late are not used', () => {
    const { is, at, tell, input, connected, greet, opens } = machine({ canRefresh: true })
    connected()
    greet({ expiresInMs: 100_000, heartbeatMs: 3_600_000 })
    at(90_000)
    tell({ type: 'ended' })
    at(is().nextRetryAt!)
    expect(opens.at(-1)).toMatchObject({ generation: 2, refresh: true, renewed: undefined })
    input({ type: 'renewed', headers: new Headers() }, 1)
    expect(is().generation).toBe(2)
  })

  test('are left to expire when nobody can be asked for others', () => {
    const { is, at, connected, greet } = machine()
    connected()
    greet({ expiresInMs: 100_000, heartbeatMs: 3_600_000 })
    at(1_000_000)
    expect(is()).toMatchObject({ state: 'connected', generation: 1 })
  })

  test.each([1, -1, 0, 5000])('in %i ms do not make the client ask again and again', (expiresInMs) => {
    const { is, at, connected, greet } = machine({ canRefresh: true })
    connected()
    greet({ expiresInMs, heartbeatMs: 3_600_000 })
    at(4999)
    expect(is().generation).toBe(1)
  })

  test('are asked for anew when they expired while there was no connection', () => {
    const { is, at, tell, connected, greet, setClock, fire, opens } = machine({ canRefresh: true })
    connected()
    greet({ expiresInMs: 100_000 })
    at(20_000)
    tell({ type: 'ended' })
    expect(is().state).toBe('backoff')
    setClock(200_000)
    fire()
    expect(opens.at(-1)?.refresh).toBe(true)
  })
})

describe('credentials that are asked for', () => {
  test('may take any time: the clock starts when the request is sent', () => {
    const { is, at, tell } = machine({ canRefresh: true, tiers: 2, tickMs: 1000 })
    tell({ type: 'asking', asking: true })
    at(600_000)
    expect(is()).toMatchObject({ state: 'connecting', generation: 1 })
    tell({ type: 'asking', asking: false })
    at(629_999)
    expect(is().generation).toBe(1)
    at(630_000)
    expect(is().state).toBe('backoff')
    // Until then nothing spoke against the transport, and a request without an answer does.
    expect(is().faults).toBe(1.5)
  })

  test('are not asked for twice because the page was frozen or comes back meanwhile', () => {
    const { is, input, elapse, tell } = machine({ canRefresh: true })
    tell({ type: 'asking', asking: true })
    elapse(600_000)
    input({ type: 'thaw' })
    input({ type: 'wake' })
    expect(is().generation).toBe(1)
  })

  test('are asked for again, as after any failure, when the user’s code rejects', () => {
    const { is, at, tell } = machine({ canRefresh: true })
    tell({ type: 'asking', asking: true })
    tell({ type: 'ended' })
    at(is().nextRetryAt!)
    expect(is()).toMatchObject({ generation: 2, asking: false })
  })
})

describe('a hub that ends a stream on purpose (§4.10)', () => {
  test('is asked again after its retry, and the reason shows until then', () => {
    const { is, at, tell, connected, greet } = machine()
    connected()
    greet()
    at(8000)
    tell({ type: 'retry', ms: 4000 })
    tell({ type: 'ended', reason: 'drain' })
    expect(is()).toMatchObject({ state: 'backoff', closeReason: 'drain', nextRetryAt: 12_100 })
    at(12_100)
    connected()
    greet()
    expect(is().closeReason).toBeNull()
  })

  test('shows its latest reason, and none that a later connection has outlived', () => {
    const { is, at, tell, connected } = machine()
    for (const reason of ['drain', 'overloaded'] as const) {
      connected()
      tell({ type: 'ended', reason })
      expect(is().closeReason).toBe(reason)
      at(is().nextRetryAt!)
    }
    tell({ type: 'ended' })
    expect(is()).toMatchObject({ state: 'backoff', closeReason: null })
  })

  test('ends it for good when it has nothing more to send', () => {
    const { is, tell, connected, greet, timer } = machine()
    connected()
    greet()
    tell({ type: 'ended', reason: 'finished' })
    expect(is()).toMatchObject({ state: 'closed', closeReason: 'finished' })
    expect(timer()).toBe(Infinity)
  })

  test('is asked with another token when the first one has expired', () => {
    const { is, at, tell, connected, greet, opens } = machine()
    connected()
    greet()
    tell({ type: 'ended', reason: 'token-expired' })
    at(is().nextRetryAt!)
    expect(opens.at(-1)?.refresh).toBe(true)
    connected()
    expect(is().refresh).toBe(false)
  })

  test('is asked less and less often when it does so again and again', () => {
    const { is, at, tell, connected } = machine()
    const waits = Array.from({ length: 4 }, () => {
      connected()
      tell({ type: 'ended', reason: 'overloaded' })
      const from = at()
      at(is().nextRetryAt!)
      return at() - from
    })
    expect(waits).toEqual([750, 1000, 1500, 2500])
  })
})
