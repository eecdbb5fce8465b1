import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createLateHeads } from '../../src/http/late-heads.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const neverFails = (error: unknown) => {
  throw error
}

/** A stream that notes when its head went out. */
function waiting(sent: number[], name: number) {
  let isOut = false
  return {
    sendHead() {
      if (isOut) return false
      isOut = true
      sent.push(name)
      return true
    },
  }
}

test('the head of each stream goes out once, after half a second to a second', () => {
  const heads = createLateHeads(neverFails)
  const sent: number[] = []
  heads.add(waiting(sent, 1))
  vi.advanceTimersByTime(499)
  heads.add(waiting(sent, 2))
  vi.advanceTimersByTime(400)
  expect(sent).toEqual([])
  vi.advanceTimersByTime(101)
  expect(sent).toEqual([1, 2])
  vi.advanceTimersByTime(60_000)
  expect(sent).toEqual([1, 2])
  expect(vi.getTimerCount()).toBe(0)
  heads.add(waiting(sent, 3))
  vi.advanceTimersByTime(1000)
  expect(sent).toEqual([1, 2, 3])
})

test('many heads are sent over several turns of the event loop, in order, and those already out cost no turn', () => {
  const heads = createLateHeads(neverFails)
  const sent: number[] = []
  for (let name = 0; name < 1000; name += 1) {
    const stream = waiting(sent, name)
    if (name % 5 === 0) stream.sendHead()
    heads.add(stream)
  }
  sent.length = 0
  vi.advanceTimersByTime(999)
  expect(sent).toEqual([])
  vi.advanceTimersToNextTimer()
  expect(sent.length).toBeGreaterThan(0)
  expect(sent.length).toBeLessThan(100)
  vi.advanceTimersByTime(100)
  expect(sent).toEqual(Array.from({ length: 1000 }, (_, name) => name).filter((name) => name % 5 !== 0))
})

test('a head that fails is told, and keeps no other head from going out', () => {
  const failures: unknown[] = []
  const heads = createLateHeads((error) => failures.push(error))
  const sent: number[] = []
  const failure = new Error('a middleware failed')
  heads.add(waiting(sent, 1))
  heads.add({
    sendHead() {
      throw failure
    },
  })
  heads.add(waiting(sent, 2))
  vi.advanceTimersByTime(1000)
  expect([sent, failures]).toEqual([[1, 2], [failure]])
})
