import { describe, expect, test } from 'vitest'
import { type Connection, type Effect, type Input, newConnection, type Report, step } from '../src/connection.ts'

describe('opening', () => {
  test('a first connection asks for no place', () => {
    expect(machine().opens).toMatchObject([{ generation: 1, cursor: null, cursorIn: 'header' }])
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
    expect(is().state).toBe('connected')
    at(40_000)
    expect(is().state).toBe('backoff')
  })
})

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
    tell({ type: 'answered', status, isEventStream: false, retryAfterMs: 0 })
    expect(is()).toMatchObject({ state: 'closed', closeReason })
    expect(timer()).toBe(Infinity)
  })

  test('200 with another content type ends the stream', () => {
    const { is, tell } = machine()
    tell({ type: 'answered', status: 200, isEventStream: false, retryAfterMs: 0 })
    expect(is()).toMatchObject({ state: 'closed', closeReason: 'wrong-content-type' })
  })

  test.each([408, 425, 429, 500, 502, 503, 504])('%i is retried', (status) => {
    const { is, tell } = machine()
    tell({ type: 'answered', status, isEventStream: false, retryAfterMs: 0 })
    expect(is()).toMatchObject({ state: 'backoff', attempt: 1 })
  })

  test('with Retry-After is retried then and not before, even when the network comes back', () => {
    const { is, tell, at, input } = machine()
    tell({ type: 'answered', status: 503, isEventStream: false, retryAfterMs: 20_000 })
    expect(is().nextRetryAt).toBe(20_100)
    at(19_999)
    input({ type: 'wake' })
    expect(is().state).toBe('backoff')
    at(20_000)
    input({ type: 'wake' })
    expect(is().state).toBe('connecting')
  })

  test('with a Retry-After of a day is asked again on waking, once the longest wait is over', () => {
    const { is, tell, setClock, input } = machine()
    tell({ type: 'answered', status: 503, isEventStream: false, retryAfterMs: 86_400_000 })
    setClock(30_000)
    input({ type: 'wake' })
    expect(is().state).toBe('connecting')
  })

  test('asks for Retry-After once: the next failure waits as any other', () => {
    const { is, tell, at } = machine()
    tell({ type: 'answered', status: 503, isEventStream: false, retryAfterMs: 20_000 })
    at(20_100)
    tell({ type: 'ended' })
    expect(is().nextRetryAt).toBe(20_100 + 500 + 500)
  })
})

describe('retrying', () => {
  test('a cut stream comes back after the wait that the server announced, and a little', () => {
    const { is, at, tell, connected, greet, opens } = machine()
    connected()
    tell({ type: 'retry', ms: 2000 })
    greet()
    at(8000)
    tell({ type: 'ended' })
    expect(is()).toMatchObject({ state: 'backoff', attempt: 1, nextRetryAt: 10_100 })
    at(10_099)
    expect(opens).toHaveLength(1)
    at(10_100)
    expect(opens).toHaveLength(2)
    expect(is().nextRetryAt).toBeNull()
  })

  test('failures are counted until a stream has been good for five seconds', () => {
    const { is, tell, at, elapse, connected, greet } = machine()
    tell({ type: 'ended' })
    at(is().nextRetryAt!)
    tell({ type: 'ended' })
    at(is().nextRetryAt!)
    expect(is().attempt).toBe(2)
    connected()
    greet()
    elapse(4999)
    tell({ type: 'bytes' })
    expect(is().attempt).toBe(2)
    elapse(1)
    tell({ type: 'bytes' })
    expect(is().attempt).toBe(0)
  })

  test('a server that accepts, greets and drops is asked less and less often', () => {
    const { is, tell, at, elapse, connected, greet } = machine()
    const waits = Array.from({ length: 9 }, () => {
      connected()
      greet()
      elapse(10)
      tell({ type: 'ended' })
      const from = at()
      at(is().nextRetryAt!)
      return at() - from
    })
    expect(waits).toEqual([600, 1000, 1500, 2500, 4500, 8500, 15_250, 15_250, 15_250])
  })

  test('a stream without hello or an event was not good, however long it lasted', () => {
    const { is, tell, elapse, connected } = machine()
    tell({ type: 'ended' })
    elapse(600)
    connected()
    for (let beat = 0; beat < 9; beat++) {
      elapse(10_000)
      tell({ type: 'bytes' })
    }
    tell({ type: 'ended' })
    expect(is().attempt).toBe(2)
  })

  test('a quiet stream was good when it lasted until the server ended it', () => {
    const { is, tell, elapse, connected, greet } = machine()
    tell({ type: 'ended' })
    elapse(600)
    connected()
    greet()
    elapse(5000)
    tell({ type: 'ended' })
    expect(is().attempt).toBe(1)
  })

  test('a good stream does not vouch for the next one', () => {
    const { is, tell, elapse, connected, greet } = machine()
    connected()
    greet()
    elapse(5000)
    tell({ type: 'ended' })
    elapse(600)
    connected()
    elapse(5000)
    tell({ type: 'ended' })
    expect(is().attempt).toBe(2)
  })

  test('as often as the user allows, and then no more', () => {
    const { is, tell, at, timer } = machine({ maxRetries: 2 })
    for (let retry = 1; retry <= 2; retry++) {
      tell({ type: 'ended' })
      expect(is()).toMatchObject({ state: 'backoff', attempt: retry })
      at(is().nextRetryAt!)
    }
    tell({ type: 'ended' })
    expect(is()).toMatchObject({ state: 'closed', closeReason: 'too-many-retries' })
    expect(timer()).toBe(Infinity)
  })

  test('a failure that would only repeat itself ends the stream', () => {
    const { is, tell } = machine()
    tell({ type: 'ended', reason: 'too-large', final: true })
    expect(is()).toMatchObject({ state: 'closed', closeReason: 'too-large' })
  })

  test('a network that comes back ends the wait', () => {
    const { is, tell, input } = machine()
    tell({ type: 'ended' })
    input({ type: 'wake' })
    expect(is()).toMatchObject({ state: 'connecting', attempt: 1, nextRetryAt: null })
  })

  test('a clock that was put back by an hour does not lengthen the wait', () => {
    const { tell, is, setClock, fire } = machine()
    tell({ type: 'ended' })
    setClock(-3_600_000)
    fire()
    expect(is().state).toBe('connecting')
  })
})

describe('a silent line', () => {
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

  test('is not one on which anything arrives, and costs no timer per arrival', () => {
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

  test('of a server that announces no heartbeat proves nothing', () => {
    const { is, tell, elapse, connected, timer } = machine()
    connected()
    tell({ type: 'event', id: '1' })
    elapse(86_400_000)
    expect(is().state).toBe('connected')
    expect(timer()).toBe(Infinity)
  })

  test('proves nothing while a handler keeps us from reading', () => {
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

  test('is noticed again on the next connection, also when a handler had kept us from reading the last', () => {
    const { is, tell, input, elapse, connected } = machine()
    connected()
    tell({ type: 'paused', paused: true })
    input({ type: 'connect' })
    elapse(30_000)
    expect(is().state).toBe('backoff')
  })

  test('of a heartbeat that no timer can wait for is waited for all the same', () => {
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

describe('the cursor', () => {
  test('is there before the first event, from hello (§4.4)', () => {
    const { connected, greet, is } = machine()
    connected()
    greet({ id: 'start' })
    expect(is().cursor).toBe('start')
  })

  test('follows the events and goes along on the next connection', () => {
    const { connected, greet, tell, at, is, opens } = machine()
    connected()
    greet({ id: 'start' })
    tell({ type: 'event', id: '1' })
    tell({ type: 'id', id: '2' })
    tell({ type: 'ended' })
    at(is().nextRetryAt!)
    expect(opens.at(-1)).toMatchObject({ cursor: '2', cursorIn: 'header' })
  })

  test('is not moved by hello when the hub saw none: the header was stripped, and the URL takes its place (§4.4)', () => {
    const { connected, greet, is, opens, effects } = machine({ cursor: 'mine' })
    connected()
    greet({ id: 'theirs', requested: null })
    expect(opens.at(-1)).toMatchObject({ generation: 2, cursor: 'mine', cursorIn: 'query' })
    expect(effects.filter((effect) => effect === 'abort')).toHaveLength(1)
    connected()
    greet({ id: 'mine', requested: 'mine' })
    expect(is()).toMatchObject({ cursor: 'mine', astray: false })
  })

  test("is not moved by another reader's stream, such as a cache may hand out", () => {
    const { connected, greet, opens } = machine({ cursor: 'mine' })
    connected()
    greet({ id: 'yours', requested: 'yours' })
    expect(opens.at(-1)).toMatchObject({ cursor: 'mine', cursorIn: 'query' })
  })

  test('that the hub does not see in the URL either is a gap, of which the user is told', () => {
    const { connected, greet, input, is } = machine({ cursor: 'mine' })
    connected()
    greet({ id: 'theirs', requested: null })
    connected()
    greet({ id: 'theirs', requested: null })
    expect(is()).toMatchObject({ state: 'connected', cursor: 'mine', astray: true })
    input({ type: 'connect' })
    connected()
    greet({ id: 'mine', requested: 'mine' })
    expect(is().astray).toBe(false)
  })

  test('is not moved by a hello that does not say what it was asked for', () => {
    const { connected, tell, is } = machine({ cursor: 'mine' })
    connected()
    tell({ type: 'hello', id: 'theirs', hello: {} })
    expect(is()).toMatchObject({ state: 'connected', cursor: 'mine' })
  })

  test.each(['two words', 'a\nb', 'é', 'x'.repeat(129)])(
    'is not moved to %j, which no request could carry (§2.6)',
    (id) => {
      const { connected, tell, is } = machine({ cursor: 'mine' })
      connected()
      tell({ type: 'event', id })
      expect(is().cursor).toBe('mine')
    },
  )

  test('is given up when the server clears its id', () => {
    const { connected, tell, is } = machine({ cursor: 'mine' })
    connected()
    tell({ type: 'id', id: '' })
    expect(is().cursor).toBeNull()
  })

  test('counts the event whose handler closed the stream', () => {
    const { connected, tell, input, is } = machine()
    connected()
    tell({ type: 'event', id: '1' })
    input({ type: 'close' })
    tell({ type: 'event', id: '2' })
    expect(is()).toMatchObject({ state: 'closed', cursor: '2' })
  })
})

describe('a connection that was given up', () => {
  test('can report what it likes: nobody listens', () => {
    const { is, input, connected, effects } = machine()
    connected()
    input({ type: 'connect' })
    const before = is()
    const done = effects.length
    const late: Report[] = [
      { type: 'answered', status: 401, isEventStream: false, retryAfterMs: 0 },
      { type: 'bytes' },
      { type: 'event', id: 'late' },
      { type: 'hello', id: 'late', hello: { requested: null, heartbeatMs: 1 } },
      { type: 'ended' },
      { type: 'ended', reason: 'too-large', final: true },
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

  test('but never more than two minutes', () => {
    const { is, input, elapse, connected, greet } = machine()
    connected()
    greet({ heartbeatMs: 3_600_000 })
    input({ type: 'connect' })
    elapse(120_000)
    expect(is().state).toBe('backoff')
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

  test('and has nothing more to send, ends it for good', () => {
    const { is, tell, connected, greet, timer } = machine()
    connected()
    greet()
    tell({ type: 'ended', reason: 'finished', final: true })
    expect(is()).toMatchObject({ state: 'closed', closeReason: 'finished' })
    expect(timer()).toBe(Infinity)
  })

  test('because a token has expired, is asked with another', () => {
    const { is, at, tell, connected, greet, opens } = machine()
    connected()
    greet()
    tell({ type: 'ended', reason: 'token-expired' })
    at(is().nextRetryAt!)
    expect(opens.at(-1)?.refresh).toBe(true)
    connected()
    expect(is().refresh).toBe(false)
  })

  test('again and again, is asked less and less often', () => {
    const { is, at, tell, connected } = machine()
    const waits = Array.from({ length: 4 }, () => {
      connected()
      tell({ type: 'ended', reason: 'overloaded' })
      const from = at()
      at(is().nextRetryAt!)
      return at() - from
    })
    expect(waits).toEqual([600, 1000, 1500, 2500])
  })
})

describe('401', () => {
  const refusal = { type: 'answered', status: 401, isEventStream: false, retryAfterMs: 0 } as const

  test('is answered with other credentials, once', () => {
    const { is, tell, opens } = machine({ canRefresh: true })
    tell(refusal)
    expect(opens.at(-1)).toMatchObject({ generation: 2, refresh: true })
    tell(refusal)
    expect(is()).toMatchObject({ state: 'closed', closeReason: 'unauthorized' })
  })

  test('is answered again after a connection that was accepted', () => {
    const { is, at, tell, connected } = machine({ canRefresh: true })
    tell(refusal)
    connected()
    tell({ type: 'ended' })
    at(is().nextRetryAt!)
    tell(refusal)
    expect(is()).toMatchObject({ state: 'connecting', refresh: true })
  })

  test('ends the stream when nobody can be asked for others', () => {
    const { is, tell } = machine()
    tell(refusal)
    expect(is()).toMatchObject({ state: 'closed', closeReason: 'unauthorized' })
  })
})

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

describe('reloads', () => {
  test('may follow each other a few times, and are then kept apart', () => {
    const { at, is, tell, connected, greet } = machine()
    const reloadedAt: number[] = []
    connected()
    greet()
    while (at() < 600_000) {
      tell({ type: 'sync' })
      if (is().state === 'connected') reloadedAt.push(at())
      at(is().nextRetryAt ?? at() + 1000)
      if (is().state === 'connected') continue
      connected()
      greet()
    }
    expect(reloadedAt.slice(0, 5)).toEqual([0, 1000, 2000, 3000, 4000])
    expect(reloadedAt.length).toBeGreaterThan(20)
    expect(reloadedAt.length).toBeLessThan(26)
  })

  test('are not held up for ever by a clock that was put back', () => {
    const { at, setClock, is, tell, connected, greet } = machine()
    setClock(86_400_000)
    for (let time = 0; time < 5; time++) tell({ type: 'sync' })
    setClock(0)
    tell({ type: 'sync' })
    expect(is().state).toBe('backoff')
    at(is().nextRetryAt!)
    connected()
    greet()
    tell({ type: 'sync' })
    expect(is().state).toBe('connected')
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

/** A started machine in virtual time that begins at 0, with its one timer kept and all its effects noted. */
function machine({ cursor = null as string | null, maxRetries = Infinity, rungs = 1, canRefresh = false } = {}) {
  let connection: Connection = newConnection(cursor)
  let now = 0
  let timerAt = Infinity
  let timersSet = 0
  const effects: Effect[] = []
  const opens: Connection[] = []

  function input(given: Input, generation?: number): void {
    const moment = { now, random: () => 0.5, retryMs: 500, maxRetryMs: 30_000, maxRetries, rungs, canRefresh }
    const taken = step(connection, given, moment, generation)
    connection = taken.connection
    for (const effect of taken.effects) {
      effects.push(effect)
      if (effect === 'open') opens.push(connection)
      if (effect !== 'timer') continue
      timerAt = connection.timerAt
      timersSet++
    }
  }
  const tell = (report: Report) => input(report, connection.generation)
  function fire(): void {
    timerAt = Infinity
    input({ type: 'timer' })
  }
  function at(time = now): number {
    while (timerAt <= time) {
      now = timerAt
      fire()
    }
    now = time
    return now
  }

  input({ type: 'connect' })
  effects.length = 0
  return {
    is: () => connection,
    effects,
    opens,
    input,
    /** Reports something about the current connection. */
    tell,
    connected: () => tell({ type: 'answered', status: 200, isEventStream: true, retryAfterMs: 0 }),
    greet: ({ id = null, ...fields }: { id?: string | null; requested?: string | null; heartbeatMs?: number } = {}) =>
      tell({ type: 'hello', id, hello: { requested: null, heartbeatMs: 25_000, ...fields } }),
    /** Lets time pass up to a moment, timers included; without one, tells the time. */
    at,
    elapse: (ms: number) => at(now + ms),
    /** Sets the clock without letting time pass. */
    setClock: (time: number) => {
      now = time
    },
    /** Lets the timer fire, whatever the clock says. */
    fire,
    timer: () => timerAt,
    timers: () => timersSet,
  }
}
