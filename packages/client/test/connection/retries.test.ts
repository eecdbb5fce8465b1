import { describe, expect, test } from 'vitest'
import { machine } from '../support/machine.ts'

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
    expect(waits).toEqual([750, 1000, 1500, 2500, 4500, 8500, 15_250, 15_250, 15_250])
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
    elapse(750)
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

  test('stops after as many retries as the user allows', () => {
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
    tell({ type: 'ended', reason: 'too-large' })
    expect(is()).toMatchObject({ state: 'closed', closeReason: 'too-large' })
  })

  test('a network that comes back ends the wait', () => {
    const { is, tell, input } = machine()
    tell({ type: 'ended' })
    input({ type: 'wake' })
    expect(is()).toMatchObject({ state: 'connecting', attempt: 0, nextRetryAt: null })
  })

  test('a network that comes back, or a tab that is seen again, gives the user’s limit anew', () => {
    const { is, input, tell } = machine({ maxRetries: 2 })
    for (let outage = 0; outage < 3; outage++) {
      for (let retry = 0; retry < 2; retry++) {
        tell({ type: 'ended' })
        input({ type: retry === 0 ? 'connect' : 'wake' })
      }
    }
    expect(is().state).toBe('connecting')
    for (let retry = 0; retry < 2; retry++) {
      tell({ type: 'ended' })
      input({ type: 'connect' })
    }
    tell({ type: 'ended' })
    expect(is()).toMatchObject({ state: 'closed', closeReason: 'too-many-retries' })
  })

  test('a clock that was put back by an hour does not lengthen the wait', () => {
    const { tell, is, setClock, fire } = machine()
    tell({ type: 'ended' })
    setClock(-3_600_000)
    fire()
    expect(is().state).toBe('connecting')
  })
})

describe('while somebody waits for the stream, and the hub has few readers,', () => {
  /** The waits of a hub's reader, from a loss on. */
  function waitsOf({ retryMs = 2200, ...options }: { retryMs?: number; isAwaited?: boolean; maxRetries?: number }) {
    const { is, at, tell, connected, greet, elapse } = machine({ isAwaited: true, ...options })
    connected()
    tell({ type: 'retry', ms: retryMs })
    greet()
    elapse(8000)
    return Array.from({ length: 40 }, () => {
      tell({ type: 'ended' })
      const from = at()
      at(is().nextRetryAt!)
      return at() - from
    })
  }

  test('the first wait is what the hub asked for, and those of a minute stay below 3 s; then they grow', () => {
    const [first, ...waits] = waitsOf({})
    expect(first).toBe(2300)
    const quick = waits.slice(0, 32)
    expect(Math.max(...quick)).toBeLessThan(3000)
    expect(quick.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThan(45_000)
    expect(waits.slice(32)).toEqual([4400, 6600, 11_000, 16_100, 16_100, 16_100, 16_100])
  })

  test('a stream that is cut soon after its return waits as after a second cut, however long it was away', () => {
    const { is, at, tell, connected, greet, elapse } = machine({ isAwaited: true })
    const waits = [1, 1, 25, 1, 1].map((failures) => {
      connected()
      tell({ type: 'retry', ms: 2200 })
      greet()
      elapse(1000)
      tell({ type: 'ended' })
      const waitMs = is().nextRetryAt! - at()
      for (let failure = 0; failure < failures; failure++) {
        at(is().nextRetryAt!)
        tell({ type: 'ended' })
      }
      at(is().nextRetryAt!)
      return waitMs
    })
    expect(waits).toEqual([2300, 4400, 6600, 11_000, 16_100])
  })

  test('a stream that was good forgets how long it was away', () => {
    const { is, at, tell, connected, greet, elapse } = machine({ isAwaited: true })
    for (let outage = 0; outage < 3; outage++) {
      connected()
      tell({ type: 'retry', ms: 2200 })
      greet()
      elapse(6000)
      for (let failure = 0; failure < 30; failure++) {
        tell({ type: 'ended' })
        expect(is().nextRetryAt! - at()).toBeLessThan(3000)
        at(is().nextRetryAt!)
      }
    }
  })

  test.each([
    ['nobody sees the page', { isAwaited: false }],
    ['the hub has many readers', { retryMs: 3001 }],
  ])('but not when %s', (_, options) => {
    const waits = waitsOf(options)
    expect(Math.min(...waits.slice(4, 32))).toBeGreaterThan(10_000)
  })

  test('a wait that the server asks for, or a server that drops its streams, counts as before', () => {
    const { is, at, tell, connected, greet } = machine({ isAwaited: true })
    const waits = [0, 1, 2, 3, 4].map((attempt) => {
      if (attempt < 2) {
        tell({ type: 'answered', status: 503, isStream: false, retryAfterMs: 4000 })
      } else {
        connected()
        greet()
        tell({ type: 'ended' })
      }
      const from = at()
      at(is().nextRetryAt!)
      return at() - from
    })
    expect(waits).toEqual([4250, 4500, 1500, 2500, 4500])
  })
})

describe('the first wait', () => {
  test('of a server that told all its clients the same is drawn from a range as long as that', () => {
    const { is, tell, connected } = machine()
    connected()
    tell({ type: 'retry', ms: 2000 })
    tell({ type: 'ended' })
    expect(is().nextRetryAt).toBe(2000 + 1000)
  })

  test('of a hub is what the hub told this client, which it has spread over all of them (§4.11)', () => {
    const { is, tell, connected, greet } = machine()
    connected()
    tell({ type: 'retry', ms: 45_000 })
    greet()
    tell({ type: 'ended' })
    expect(is().nextRetryAt).toBe(45_000 + 100)
  })
})

describe('a stream that its owner did not close', () => {
  test.each([401, 403, 404, 204])('opens again from its cursor after %i, when it is told to', (status) => {
    const { is, tell, input, opens } = machine({ cursor: 'e7', maxRetries: 0 })
    tell({ type: 'answered', status, isStream: false, retryAfterMs: 0 })
    expect(is().state).toBe('closed')
    for (const type of ['wake', 'timer', 'thaw', 'hide'] as const) input({ type })
    expect(is().state).toBe('closed')
    input({ type: 'connect' })
    expect(is()).toMatchObject({ state: 'connecting', attempt: 0, closeReason: null })
    expect(opens.at(-1)).toMatchObject({ generation: 2, cursor: 'e7' })
  })

  test('counts its retries anew', () => {
    const { is, tell, input } = machine({ maxRetries: 1 })
    const fail = () => {
      tell({ type: 'ended' })
      if (is().state === 'backoff') input({ type: 'timer' })
    }
    fail()
    fail()
    expect(is().closeReason).toBe('too-many-retries')
    input({ type: 'connect' })
    fail()
    expect(is().state).toBe('connecting')
    fail()
    expect(is().closeReason).toBe('too-many-retries')
  })

  test('stays closed once its owner has closed it', () => {
    const { is, input } = machine()
    input({ type: 'close' })
    input({ type: 'connect' })
    expect(is()).toMatchObject({ state: 'closed', closeReason: 'closed' })
  })
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
