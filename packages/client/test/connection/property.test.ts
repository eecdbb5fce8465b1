import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Connection, type Effect, newConnection, step } from '../../src/connection.ts'
import type { Input, Report } from '../../src/connection-input.ts'

const id = fc.constantFrom('a', 'b', 'c', null)
const report: fc.Arbitrary<Report> = fc.oneof(
  fc.record({
    type: fc.constant('answered' as const),
    status: fc.constantFrom(200, 200, 200, 204, 401, 404, 429, 503),
    isStream: fc.constantFrom(true, true, false),
    retryAfterMs: fc.constantFrom(0, 60_000),
    isElsewhere: fc.boolean(),
  }),
  fc.record({
    type: fc.constant('hello' as const),
    id,
    hello: fc.record(
      {
        requested: fc.constantFrom('a', 'b', 'c', null),
        heartbeatMs: fc.constantFrom(10, 25_000, 0),
        expiresInMs: fc.constantFrom(0, 6000),
      },
      { requiredKeys: [] },
    ),
  }),
  fc.record({ type: fc.constantFrom('event' as const, 'id' as const), id }),
  fc.record({ type: fc.constant('retry' as const), ms: fc.nat(10_000) }),
  fc.record({ type: fc.constantFrom('bytes' as const, 'unusable' as const) }),
  fc.record({ type: fc.constant('paused' as const), paused: fc.boolean() }),
  fc.record({ type: fc.constant('asking' as const), asking: fc.boolean() }),
  fc.record({ type: fc.constant('renewed' as const), headers: fc.constant(new Headers()) }),
  fc.record({ type: fc.constant('sync' as const) }),
  fc.record({
    type: fc.constant('ended' as const),
    reason: fc.constantFrom(undefined, undefined, 'drain' as const, 'token-expired' as const, 'finished' as const),
    against: fc.constantFrom(0, 0, 1, 3),
  }),
)
const happening = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ what: fc.constant('report' as const), report, age: fc.constantFrom(0, 0, 0, 1, 2) }),
  },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('timer' as const), late: fc.nat(100) }) },
  {
    weight: 2,
    arbitrary: fc.record({ what: fc.constant('time' as const), ms: fc.integer({ min: -5000, max: 60_000 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constantFrom('wake' as const, 'connect' as const, 'hide' as const, 'thaw' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('close' as const) }) },
)
type Happening = typeof happening extends fc.Arbitrary<infer Value> ? Value : never

test('no order of events opens two connections, keeps a timer after the end, leaves a wait without a timer, or loses the cursor', () => {
  fc.assert(
    fc.property(
      fc.constantFrom('a', null),
      fc.array(happening, { maxLength: 60 }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      fc.constantFrom(50, Infinity),
      (cursor, happenings, luck, tickMs) => {
        const line = followed(cursor, luck, tickMs)
        for (const one of [{ what: 'connect' as const }, ...happenings]) line.happens(one)
      },
    ),
    { seed: 61, numRuns: 2000 },
  )
})

/** A machine whose every step is checked against what a user relies on. */
function followed(cursor: string | null, luck: number, tickMs: number) {
  let is: Connection = newConnection(cursor, 'me')
  let now = 0
  let timerAt = Infinity
  // A stream that waits for its cursor counts as connecting, too.
  let openGeneration: number | null = is.generation

  function happens(one: Happening): void {
    if (one.what === 'report') {
      take(one.report, is.generation - one.age)
    } else if (one.what === 'time') {
      now += one.ms
    } else if (one.what === 'timer') {
      if (timerAt === Infinity) return
      now = Math.max(now, timerAt + one.late)
      timerAt = Infinity
      take({ type: 'timer' })
    } else {
      take({ type: one.what })
    }
  }

  function take(input: Input, generation?: number): void {
    const before = is
    const policy = {
      retryMs: 500,
      maxRetryMs: 30_000,
      maxRetries: 8,
      tiers: 2,
      canRefresh: true,
      tickMs,
      isAwaited: false,
    }
    const taken = step(before, input, { now, random: () => luck, ...policy }, generation)
    is = taken.connection
    for (const effect of taken.effects) carryOut(effect)

    const isLive = is.state === 'connecting' || is.state === 'connected'
    expect(openGeneration).toBe(isLive ? is.generation : null)
    expect(timerAt).toBe(is.timerAt)
    if (is.state === 'closed') expect(timerAt).toBe(Infinity)
    if (is.state === 'backoff') expect(timerAt).toBe(is.nextRetryAt ?? Infinity)
    // A page shows it, and a countdown counts by it.
    expect(Number.isInteger(is.nextRetryAt ?? 0)).toBe(true)
    if (is.state === 'backoff' && input.type === 'wake') expect(is.nextRetryAt).not.toBeNull()
    // Only a page that is hidden waits for nothing but to be seen.
    if (is.state === 'backoff' && is.nextRetryAt === null)
      expect(input.type === 'hide' || before.nextRetryAt === null).toBe(true)
    if (before.state === 'closed') {
      const isReopened = input.type === 'connect' && before.closeReason !== 'closed'
      expect(is.state).toBe(isReopened ? 'connecting' : 'closed')
    }
    if (before.cursor !== null) expect(is.cursor).not.toBeNull()
    if (is.cursor !== before.cursor) {
      expect(generation).toBe(before.generation)
      expect(input).toMatchObject({ id: is.cursor })
      // Only a hello that answers to what was asked may move the place (§4.4).
      if (input.type === 'hello' && before.sent !== null) expect(input.hello.requested).toBe(before.sent)
    }
  }

  function carryOut(effect: Effect): void {
    if (effect === 'abort') {
      expect(openGeneration).not.toBeNull()
      openGeneration = null
    } else if (effect === 'open') {
      expect(openGeneration).toBeNull()
      openGeneration = is.generation
      expect(is.sent).toBe(is.cursor)
    } else if (effect === 'timer') {
      timerAt = is.timerAt
    }
  }

  return { happens }
}
