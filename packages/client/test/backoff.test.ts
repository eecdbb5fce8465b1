import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { retryDelay } from '../src/backoff.ts'

const calm = { failures: 0, baseMs: 2000, floorMs: 2000, maxMs: 30_000 }
const lucky = () => 0
const average = () => 0.5
const unlucky = () => 0.999_999

describe('the wait before a retry', () => {
  test('is what the server asked for and a little more, after a good stream', () => {
    expect(retryDelay(calm, lucky)).toBe(2000)
    expect(retryDelay(calm, average)).toBe(2100)
    expect(retryDelay(calm, unlucky)).toBeLessThan(2200)
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

  test('is bounded, and still differs between clients, when a server asks for a day', () => {
    const day = { ...calm, failures: 4, floorMs: 86_400_000 }
    expect(retryDelay(day, lucky)).toBe(30_000)
    expect(retryDelay(day, average)).toBe(31_500)
    expect(retryDelay(day, unlucky)).toBeLessThan(33_000)
  })

  test('is always one that a timer can keep', () => {
    const ms = fc.oneof(fc.double({ min: 0, noNaN: true }), fc.constant(Infinity))
    const wait = fc.record({ failures: fc.nat(5000), baseMs: ms, floorMs: ms, maxMs: ms, previousMs: ms })
    const formula = fc.constantFrom('full' as const, 'equal' as const, 'decorrelated' as const, 'none' as const)
    const chance = fc.double({ min: 0, max: 0.999_999, noNaN: true })
    fc.assert(
      fc.property(wait, formula, chance, (given, spread, luck) => {
        const delay = retryDelay(given, () => luck, spread)
        expect(delay).toBeGreaterThanOrEqual(Math.min(given.floorMs, given.maxMs, 2 ** 31 - 1))
        expect(delay).toBeLessThan(2 ** 31)
        expect(delay).toBeLessThanOrEqual(given.maxMs * 1.1)
      }),
      { seed: 62, numRuns: 1000 },
    )
  })

  test('keeps growing when it starts from nothing, so that it cannot become a hot loop', () => {
    expect(retryDelay({ failures: 4, baseMs: 0, floorMs: 0, maxMs: 30_000 }, average)).toBe(1600)
  })

  test.each([
    ['full', 2000, 6000, 9999],
    ['equal', 6000, 8000, 9999],
    ['decorrelated', 2000, 6500, 10_999],
    ['none', 10_000, 10_000, 10_000],
  ] as const)('is spread as asked for: %s', (formula, least, mean, most) => {
    const wait = { ...calm, failures: 2, previousMs: 3000 }
    expect(retryDelay(wait, lucky, formula)).toBe(least)
    expect(retryDelay(wait, average, formula)).toBe(mean)
    expect(Math.floor(retryDelay(wait, unlucky, formula))).toBe(most)
  })

  test('is what a function says, within what the server and the limit allow', () => {
    const said = (ms: number) => retryDelay({ ...calm, failures: 3 }, average, () => ms)
    expect([5000, 1, 86_400_000, Number.NaN].map(said)).toEqual([5000, 2000, 30_000, 2000])
  })

  test('is the server’s when a function throws, which is reported', () => {
    const error = vi.spyOn(console, 'error').mockReturnValue()
    onTestFinished(() => error.mockRestore())
    const fail = () => {
      throw new Error('mine')
    }
    expect(retryDelay({ ...calm, failures: 3 }, average, fail)).toBe(2000)
    expect(error).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ message: 'mine' }))
  })
})
