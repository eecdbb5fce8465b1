import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isAfter, origin, type Position } from '../src/position.ts'
import { createPositionClock } from '../src/position-clock.ts'

const tenMinutes = 600_000

describe('a hybrid clock (§2.2)', () => {
  test('follows the wall clock and counts within a millisecond', () => {
    const { clock, wall } = hybrid({ at: 5000 })
    expect([clock.next(), clock.next()]).toEqual([place(5000, 0), place(5000, 1)])
    wall.ms = 5001
    expect(clock.next()).toEqual(place(5001, 0))
  })

  test('stays where it is while the wall clock, set back, catches up', () => {
    const { clock, wall } = hybrid({ at: tenMinutes })
    clock.next()
    wall.ms = 0
    expect([clock.next(), clock.next()]).toEqual([place(tenMinutes, 1), place(tenMinutes, 2)])
    wall.ms = tenMinutes + 1
    expect(clock.next()).toEqual(place(tenMinutes + 1, 0))
  })

  test('goes ahead of the wall clock when a millisecond is full', () => {
    const { clock, wall } = hybrid({ at: 5000, maxSeq: 1 })
    expect([clock.next(), clock.next(), clock.next()]).toEqual([place(5000, 0), place(5000, 1), place(5001, 0)])
    wall.ms = 5001
    expect(clock.next()).toEqual(place(5001, 1))
  })

  test('continues after the last position of a log that is opened again, also when the machine is now behind', () => {
    const { clock } = hybrid({ at: 0, last: place(5000, 7) })
    expect(clock.last).toEqual(place(5000, 7))
    expect(clock.next()).toEqual(place(5000, 8))
  })

  test('never names a millisecond before the earliest its ids can hold', () => {
    expect(hybrid({ at: 0, minMs: 9000 }).clock.next()).toEqual(place(9000, 0))
    expect(hybrid({ at: 0, minMs: 9000, last: place(5000, 3) }).clock.next()).toEqual(place(9000, 0))
  })

  test('assigns no position that its ids cannot hold, and goes on once the wall clock is right again', () => {
    const { clock, wall } = hybrid({ at: 5000, maxMs: 9000 })
    clock.next()
    wall.ms = 9001
    const tooLate = { code: 'log-unavailable', retryable: true, message: expect.stringContaining('clock') }
    expect(() => clock.next()).toThrowError(expect.objectContaining(tooLate))
    expect(() => clock.check()).toThrowError(expect.objectContaining(tooLate))
    wall.ms = 5000
    clock.check()
    expect(clock.next()).toEqual(place(5000, 1))
    expect(() => hybrid({ at: 0, maxSeq: 3, maxMs: 9000, last: place(9000, 3) }).clock.next()).toThrowError()
  })

  test('takes whole milliseconds from a wall clock that has fractions', () => {
    expect(hybrid({ at: 5000.9 }).clock.next()).toEqual(place(5000, 0))
  })

  test('starts at the earliest millisecond when the wall clock has no answer', () => {
    expect(hybrid({ at: Number.NaN, minMs: 9000 }).clock.next()).toEqual(place(9000, 0))
  })

  test('rises strictly, whatever the wall clock answers', () => {
    const anyTime = fc.oneof(
      fc.integer({ min: -tenMinutes, max: tenMinutes }),
      fc.double({ min: -1e15, max: 1e15 }),
      fc.constant(Number.NaN),
    )
    fc.assert(
      fc.property(fc.array(anyTime), fc.integer({ min: 0, max: 3 }), (times, maxSeq) => {
        const { clock, wall } = hybrid({ at: 0, maxSeq })
        let last = clock.next()
        for (wall.ms of times) {
          const next = clock.next()
          expect(isAfter(next, last)).toBe(true)
          expect(next.seq).toBeLessThanOrEqual(maxSeq)
          last = next
        }
      }),
      { seed: 7 },
    )
  })
})

describe('a counter clock (§2.2)', () => {
  test('counts from 0, which is the first of the branch, and never asks for the time', () => {
    const clock = counter()
    expect([clock.next(), clock.next(), clock.next()]).toEqual([place(0, 0), place(0, 1), place(0, 2)])
  })

  test('continues after the last position of a log that is opened again', () => {
    expect(counter({ last: place(0, 41) }).next()).toEqual(place(0, 42))
  })

  test('uses no position twice when it is full', () => {
    const clock = counter({ last: place(0, Number.MAX_SAFE_INTEGER) })
    expect(() => clock.next()).toThrow(expect.objectContaining({ code: 'too-large' }))
    expect(clock.last).toEqual(place(0, Number.MAX_SAFE_INTEGER))
  })
})

test('a clock that has assigned nothing stands at the origin', () => {
  expect(hybrid({ at: 5000 }).clock.last).toEqual(origin)
  expect(counter().last).toEqual(origin)
})

test('the last position is the one assigned last', () => {
  const { clock } = hybrid({ at: 5000 })
  const assigned = clock.next()
  expect(clock.last).toEqual(assigned)
})

function hybrid({
  at,
  maxSeq = 4095,
  ...rest
}: {
  at: number
  maxSeq?: number
  minMs?: number
  maxMs?: number
  last?: Position
}) {
  const wall = { ms: at }
  return { wall, clock: createPositionClock({ kind: 'hybrid', maxSeq, now: () => wall.ms, ...rest }) }
}

function counter(rest: { last?: Position } = {}) {
  const now = () => expect.fail('a counter has no use for the time')
  return createPositionClock({ kind: 'counter', maxSeq: Number.MAX_SAFE_INTEGER, now, ...rest })
}

function place(ms: number, seq: number): Position {
  return { ms, seq }
}
