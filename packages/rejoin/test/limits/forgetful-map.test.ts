import { expect, test } from 'vitest'
import { createForgetfulMap } from '../../src/limits/forgetful-map.ts'

test('an entry is there for as long as was asked, and gone after twice that', () => {
  const { map, wait } = forgetful({ forMs: 1000 })
  map.set('first', 1)
  wait(999)
  map.set('second', 2)
  expect([map.get('first'), map.get('second')]).toEqual([1, 2])
  wait(999)
  expect(map.get('second')).toBe(2)
  wait(2)
  expect(map.get('first')).toBeUndefined()
  wait(1000)
  expect(map.get('second')).toBeUndefined()
  expect(map.size).toBe(0)
})

test('an entry that is set again and again stays', () => {
  const { map, wait } = forgetful({ forMs: 1000 })
  for (let n = 0; n < 100; n += 1) {
    map.set('key', n)
    wait(900)
    expect(map.get('key')).toBe(n)
  }
})

test('there are never more than twice as many entries as were allowed', () => {
  const { map } = forgetful({ forMs: 1000, maxEntries: 10 })
  for (let n = 0; n < 1000; n += 1) {
    map.set(`key ${n}`, n)
    expect(map.get(`key ${n}`)).toBe(n)
    expect(map.size).toBeLessThanOrEqual(20)
  }
})

test('a clock that was set back keeps no entry for longer', () => {
  const { map, wait } = forgetful({ forMs: 1000 })
  map.set('key', 1)
  wait(-3_600_000)
  expect(map.get('key')).toBeUndefined()
})

function forgetful(options: { forMs: number; maxEntries?: number }) {
  let now = 1_000_000
  const map = createForgetfulMap<number>(options)
  return {
    map: {
      get: (key: string) => map.get(key, now),
      set: (key: string, value: number) => map.set(key, value, now),
      get size() {
        return map.size
      },
    },
    wait(ms: number) {
      now += ms
    },
  }
}
