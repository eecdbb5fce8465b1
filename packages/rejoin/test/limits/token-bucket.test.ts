import { describe, expect, test } from 'vitest'
import { createTokenBuckets } from '../../src/limits/token-bucket.ts'

describe('a ration', () => {
  test('lets a burst through, and then so many a second', () => {
    const { take, wait } = rations({ perSecond: 2, burst: 3 })
    expect([take(), take(), take()]).toEqual([0, 0, 0])
    expect(take()).toBe(500)
    wait(500)
    expect([take(), take()]).toEqual([0, 500])
  })

  test('that is used up says how long to wait for the next', () => {
    const { take, wait } = rations({ perSecond: 10, burst: 1 })
    take()
    wait(40)
    const ms = take()
    expect(ms).toBeCloseTo(60)
    wait(ms)
    expect(take()).toBe(0)
  })

  test('is each key’s own', () => {
    const { take } = rations({ perSecond: 1, burst: 1 })
    expect([take('a'), take('b'), take('a')]).toEqual([0, 0, 1000])
  })

  test('does not grow in a pause, however long', () => {
    const { take, wait } = rations({ perSecond: 1, burst: 2 })
    take()
    wait(3_600_000)
    expect([take(), take(), take()]).toEqual([0, 0, 1000])
  })

  test('neither grows nor blocks anybody when the clock is set back', () => {
    const { take, wait } = rations({ perSecond: 1, burst: 1 })
    take()
    wait(-3_600_000)
    wait(1000)
    expect(take()).toBe(0)
  })

  test('of a key that is no longer used costs no memory', () => {
    const { take, wait, buckets } = rations({ perSecond: 10, burst: 10 })
    for (let n = 0; n < 10_000; n += 1) {
      take(`key ${n}`)
      wait(10)
    }
    expect(buckets.size).toBeLessThan(300)
  })
})

function rations(options: { perSecond: number; burst: number }) {
  let now = 1_000_000
  const buckets = createTokenBuckets({ ...options, now: () => now })
  return {
    buckets,
    take: (key = 'somebody') => buckets.take(key),
    wait(ms: number) {
      now += ms
    },
  }
}
