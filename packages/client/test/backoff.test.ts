import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type RetryWait, retryDelay } from '../src/backoff.ts'
import { withinLimits } from '../src/preparation.ts'

const calm = { failures: 0, baseMs: 2000, floorMs: 2000, maxMs: 30_000 }
const delayBy = (formula: (wait: RetryWait) => number, wait: RetryWait) =>
  retryDelay(wait, average, withinLimits(formula))
const lucky = () => 0
const average = () => 0.5
const unlucky = () => 0.999_999

describe('the wait before a retry', () => {
  test('is what a hub told this client and a little more, after a good stream', () => {
    const told = { ...calm, isSpread: true }
    expect(retryDelay(told, lucky)).toBe(2000)
    expect(retryDelay(told, average)).toBe(2100)
    expect(retryDelay(told, unlucky)).toBeLessThan(2200)
  })

  test('has full jitter from the first failure, where a server tells all clients the same', () => {
    expect(retryDelay(calm, lucky)).toBe(2000)
    expect(retryDelay(calm, average)).toBe(3000)
    expect(Math.ceil(retryDelay(calm, unlucky))).toBe(4000)
  })

  test('is drawn from a range that doubles with every failure', () => {
    expect(retryDelay({ ...calm, failures: 1 }, average)).toBe(2000 + 2000)
    expect(retryDelay({ ...calm, failures: 2 }, average)).toBe(2000 + 4000)
    expect(retryDelay({ ...calm, failures: 3 }, average)).toBe(2000 + 8000)
  })

  test('never falls below a Retry-After', () => {
    expect(retryDelay({ ...calm, floorMs: 12_000 }, lucky)).toBe(12_000)
    expect(retryDelay({ ...calm, failures: 9, floorMs: 12_000 }, lucky)).toBe(12_000)
  })

  test('still differs between clients, when a server asks for more than the limit', () => {
    const long = { ...calm, failures: 4, floorMs: 60_000 }
    expect(retryDelay(long, lucky)).toBe(60_000)
    expect(retryDelay(long, average)).toBe(63_000)
    expect(retryDelay(long, unlucky)).toBeLessThan(66_000)
  })

  test('is always one that a timer can keep', () => {
    const ms = fc.oneof(fc.double({ min: 0, noNaN: true }), fc.constant(Infinity))
    const wait = fc.record({ failures: fc.nat(5000), baseMs: ms, floorMs: ms, maxMs: ms, previousMs: ms })
    const asked = fc.option(fc.double({ noNaN: true }), { nil: undefined })
    const chance = fc.double({ min: 0, max: 0.999_999, noNaN: true })
    fc.assert(
      fc.property(wait, asked, chance, (given, ms, luck) => {
        const delay = ms === undefined ? retryDelay(given, () => luck) : delayBy(() => ms, given)
        expect(delay).toBeGreaterThanOrEqual(Math.min(given.floorMs, 1e9))
        expect(delay).toBeLessThan(2 ** 31)
        expect(delay).toBeLessThanOrEqual(Math.max(given.maxMs, given.floorMs) * 1.1)
      }),
      { seed: 62, numRuns: 1000 },
    )
  })

  test('keeps growing when it starts from nothing, so that it cannot become a hot loop', () => {
    expect(retryDelay({ failures: 4, baseMs: 0, floorMs: 0, maxMs: 30_000 }, average)).toBe(1600)
  })

  // The changelog gives these functions in the place of names that there were.
  test.each<[name: string, formula: (wait: RetryWait) => number, least: number, mean: number, most: number]>([
    [
      'none',
      ({ failures, baseMs, floorMs, maxMs }) => floorMs + Math.min(baseMs * 2 ** failures, maxMs - floorMs),
      ...([10_000, 10_000, 10_000] as const),
    ],
    [
      'equal',
      ({ failures, baseMs, floorMs, maxMs }) =>
        floorMs + Math.min(baseMs * 2 ** failures, maxMs - floorMs) * (0.5 + Math.random() / 2),
      ...([6000, 8000, 9999] as const),
    ],
    [
      '±25%',
      ({ failures, baseMs, floorMs, maxMs }) =>
        floorMs + Math.min(baseMs * 2 ** failures, (maxMs - floorMs) / 1.25) * (0.75 + Math.random() / 2),
      ...([8000, 10_000, 11_999] as const),
    ],
    [
      '+20%',
      ({ failures, baseMs, floorMs, maxMs }) =>
        floorMs + Math.min(baseMs * 2 ** failures, (maxMs - floorMs) / 1.2) * (1 + Math.random() / 5),
      ...([10_000, 10_800, 11_599] as const),
    ],
    [
      'decorrelated',
      ({ failures, baseMs, floorMs, maxMs, previousMs = 0 }) =>
        floorMs + Math.min(failures ? 3 * previousMs : baseMs, maxMs - floorMs) * Math.random(),
      ...([2000, 6500, 10_999] as const),
    ],
  ])('is spread by a function as by the name that it replaces: %s', (_, formula, least, mean, most) => {
    const wait = { ...calm, failures: 2, previousMs: 3000 }
    const random = vi.spyOn(Math, 'random')
    onTestFinished(() => random.mockRestore())
    const waits = [lucky, average, unlucky].map((luck) => {
      random.mockImplementation(luck)
      return Math.floor(delayBy(formula, wait))
    })
    expect(waits).toEqual([least, mean, most])
  })

  test('is what a function says, within what the server and the limit allow', () => {
    const said = (ms: number) => delayBy(() => ms, { ...calm, failures: 3 })
    expect([5000, 1, 86_400_000, Number.NaN].map(said)).toEqual([5000, 2000, 30_000, 2000])
  })

  test('is the server’s when a function throws, which is reported', () => {
    const error = vi.spyOn(console, 'error').mockReturnValue()
    onTestFinished(() => error.mockRestore())
    const fail = () => {
      throw new Error('mine')
    }
    expect(delayBy(fail, { ...calm, failures: 3 })).toBe(2000)
    expect(error).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ message: 'mine' }))
  })
})
