import { expect, test } from 'vitest'
import { chooseAtRandom } from '../src/random-choice.ts'

test('as many are chosen as asked for, and each at most once', () => {
  const all = Array.from({ length: 100 }, (_, index) => index)
  for (const count of [0, 1, 50, 99, 100]) {
    const chosen = chooseAtRandom(all, count)
    expect(new Set(chosen).size).toBe(count)
    expect(chosen.filter((each) => !all.includes(each))).toEqual([])
  }
  expect(all).toEqual(Array.from({ length: 100 }, (_, index) => index))
})

test('each is as likely to be chosen as the others', () => {
  const times = [0, 0, 0, 0, 0]
  for (let round = 0; round < 10_000; round += 1) {
    for (const each of chooseAtRandom([0, 1, 2, 3, 4], 2)) times[each] = (times[each] ?? 0) + 1
  }
  for (const count of times) expect(Math.abs(count - 4000)).toBeLessThan(400)
})

test('a choice among the most readers that a storm can have does not block its loop', () => {
  const all = Array.from({ length: 60_000 }, (_, index) => index)
  const startedAt = performance.now()
  chooseAtRandom(all, 59_999)
  expect(performance.now() - startedAt).toBeLessThan(500)
})
