import { expect, test } from 'vitest'
import { createRecentIds } from '../src/recent-ids.ts'

test('the last ids are known, and not all that ever were', () => {
  const recent = createRecentIds(3)
  const ids = Array.from({ length: 100 }, (_, n) => `e${n}`)
  for (const id of ids) recent.add(id)
  expect(ids.slice(-3).map((id) => recent.has(id))).toEqual([true, true, true])
  expect(ids.filter((id) => recent.has(id)).length).toBeLessThan(6)
})
