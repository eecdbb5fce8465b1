import { describe, expect, test } from 'vitest'
import { readNumbered, textOf } from '../src/numbered-event.ts'
import { ownLoadOf } from '../src/own-load.ts'
import { channelOf, type StormPlan, shareOf } from '../src/plan.ts'

const plan: StormPlan = {
  ...{ readers: 100, channels: 4, patternPercent: 29, slowPercent: 7, rate: 50, size: 20, prefix: 'storm/x' },
  ...{ forMs: 1000, cutPercent: 100, cutEveryMs: 500, patienceMs: 1000 },
}

describe('the share of a reader', () => {
  const shares = Array.from({ length: plan.readers }, (_, reader) => shareOf(plan, reader))

  test('is a pattern, or slow, for as many readers as were asked for', () => {
    expect(shares.filter(({ selector }) => selector === 'storm/x/*')).toHaveLength(29)
    expect(shares.filter(({ isSlow }) => isSlow)).toHaveLength(7)
  })

  test('holds the events of its channels and no other', () => {
    const events = Array.from({ length: 40 }, (_, event) => event)
    for (const { selector, indexOf, countOf, numberOf } of shares) {
      const own = events.filter((event) => ['storm/x/*', channelOf(plan, event)].includes(selector))
      expect(events.filter((event) => indexOf(event) !== undefined)).toEqual(own)
      expect(own.map((_, index) => numberOf(index))).toEqual(own)
      expect(own.map((event) => indexOf(event))).toEqual(own.map((_, index) => index))
      for (const count of [0, 1, 7, 40]) expect(countOf(count)).toBe(own.filter((event) => event < count).length)
    }
  })
})

describe('a numbered event', () => {
  test('is read as it was written, at any size', () => {
    for (const size of [1, 20, 200]) {
      const text = textOf({ number: 17, at: 1234.56 }, size)
      expect(text.length).toBeGreaterThanOrEqual(size)
      expect(readNumbered(text, size)).toEqual({ number: 17, at: 1234.6 })
    }
  })

  test('is not read when it was changed on the way', () => {
    const text = textOf({ number: 17, at: 1234.56 }, 20)
    for (const other of [text.slice(0, -1), `${text}x`, `${text.slice(0, -1)}y`, 'hello', '']) {
      expect(readNumbered(other, 20)).toBeUndefined()
    }
  })
})

describe('the load of the storm itself', () => {
  test('counts the seconds in which it had hardly a free moment, or was late', () => {
    const samples = [
      { busy: 0.2, cpu: 0.1, delayMs: 3 },
      { busy: 0.95, cpu: 0.9, delayMs: 20 },
      { busy: 0.5, cpu: 0.2, delayMs: 400 },
    ]
    const means = { busy: expect.closeTo(0.55), cpu: expect.closeTo(0.4) }
    expect(ownLoadOf(samples)).toEqual({ seconds: 3, busySeconds: 2, wasBottleneck: true, ...means, worstDelayMs: 400 })
  })

  test('is nothing before the first second is over', () => {
    expect(ownLoadOf([])).toEqual({
      seconds: 0,
      busySeconds: 0,
      wasBottleneck: false,
      busy: 0,
      cpu: 0,
      worstDelayMs: 0,
    })
  })
})
