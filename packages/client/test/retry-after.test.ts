import { expect, test } from 'vitest'
import { readRetryAfter } from '../src/retry-after.ts'

const now = Date.parse('Fri, 14 Nov 2025 12:00:00 GMT')

test.each([
  ['120', 120_000],
  ['0', 0],
  ['Fri, 14 Nov 2025 12:00:30 GMT', 30_000],
  ['Fri, 14 Nov 2025 11:59:30 GMT', 0],
  ['soon', 0],
  ['', 0],
  [null, 0],
])('Retry-After: %s asks to wait %i ms', (value, ms) => {
  expect(readRetryAfter(new Headers(value === null ? {} : { 'retry-after': value }), now)).toBe(ms)
})

test.each([
  ['an hour fast', '13:00:00'],
  ['an hour slow', '11:00:00'],
])('Retry-After with a date is the same wait on a clock that is %s, when the server tells its own time', (_, time) => {
  const headers = new Headers({ date: 'Fri, 14 Nov 2025 12:00:00 GMT', 'retry-after': 'Fri, 14 Nov 2025 12:00:30 GMT' })
  expect(readRetryAfter(headers, Date.parse(`Fri, 14 Nov 2025 ${time} GMT`))).toBe(30_000)
})
