import { describe, expect, test } from 'vitest'
import { createRecentIds } from '../src/recent-ids.ts'

describe('the last ids', () => {
  const numbers = Array.from({ length: 100 }, (_, n) => n)

  test.each([
    ['rise, as a log’s do', numbers.map((n) => `evt-${n}-x`)],
    ['fall', numbers.map((n) => `evt-${99 - n}-x`)],
    ['have no order', numbers.map((n) => `e${(n * 37) % 101}`)],
  ])('are known when they %s, and not all that ever were', (_, ids) => {
    const isNew = createRecentIds(3)
    expect(ids.filter((id) => !isNew(id))).toEqual([])
    expect(ids.slice(-3).filter((id) => isNew(id))).toEqual([])
    expect(ids.filter((id) => !isNew(id)).length).toBeLessThan(6)
  })
})
