import { expect, test } from 'vitest'
import { readRetryAfter } from '../src/request.ts'

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
  expect(readRetryAfter(value, now)).toBe(ms)
})
