import { expect, test } from 'vitest'
import { createRecentIds } from '../src/recent-ids.ts'

test('the oldest id is forgotten when there is room for no more', () => {
  const ids = createRecentIds(3)
  for (const id of ['a', 'b', 'c', 'd']) ids.add(id)
  expect(['a', 'b', 'c', 'd'].map(ids.has)).toEqual([false, true, true, true])
})

test('after a gap every id is new', () => {
  const ids = createRecentIds()
  ids.add('a')
  ids.clear()
  expect(ids.has('a')).toBe(false)
})
