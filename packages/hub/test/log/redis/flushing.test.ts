import { expect, test, vi } from 'vitest'
import { createFlushing } from '../../../src/log/redis/flushing.ts'

const set = (appendonly: string, appendfsync: string) => ['appendonly', appendonly, 'appendfsync', appendfsync]

test('a hub that promises more than memory asks Redis after every call whether that still holds (§5.6)', () => {
  const flushing = createFlushing(() => undefined)
  expect(flushing.isDue(true)).toBe(true)
  for (const how of ['always', 'no']) {
    flushing.learn(set('yes', how))
    expect([flushing.isDue(true), flushing.isDue(false)]).toEqual([true, true])
  }
})

test('a hub that promises memory asks Redis after single calls, and once a second in a rush', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const flushing = createFlushing(() => undefined)
  flushing.learn(set('yes', 'everysec'))
  expect([flushing.isDue(true), flushing.isDue(false)]).toEqual([false, true])
  vi.advanceTimersByTime(1001)
  expect(flushing.isDue(true)).toBe(true)
  // The server may not have said.
  flushing.learn(undefined)
  expect(flushing.isDue(true)).toBe(false)
  vi.useRealTimers()
})
