import { describe, expect, test } from 'vitest'
import { checkSelector, covers, patternsOver } from '../src/pattern.ts'

describe('a pattern (§5.2)', () => {
  test.each([
    ['orders/*', 'orders/1', true],
    ['orders/*', 'orders/1/eu', true],
    ['orders/*', 'orders/1/*', true],
    ['orders/*', 'orders/*', true],
    ['orders/*', 'orders', false],
    ['orders/*', 'ordersx/1', false],
    ['orders/*', '*', false],
    ['orders/1/*', 'orders/*', false],
    ['*', 'orders/1', true],
    ['*', '*', true],
    ['orders/1', 'orders/1', true],
    ['orders/1', 'orders/12', false],
    ['orders/1', 'orders/*', false],
  ])('%s covers %s: %s', (name, other, expected) => {
    expect(covers(name, other)).toBe(expected)
  })

  test.each(['*', 'orders/*', 'a/b/*', 'orders', 'orders/42'])('%s is a selector', (name) => {
    expect(checkSelector(name)).toBe(name)
  })

  test.each(['a*', '*/a', 'a/*/b', '**', 'a/**', '/*', 'a//*', '../*', '', 'a\n/*', undefined])(
    '%j is no selector',
    (name) => {
      expect(() => checkSelector(name)).toThrowError(expect.objectContaining({ code: 'invalid-channel' }))
    },
  )

  test('over a channel is found from the name of the channel alone', () => {
    expect([...patternsOver('a/b/c')]).toEqual(['*', 'a/*', 'a/b/*'])
    expect([...patternsOver('a')]).toEqual(['*'])
  })

  test('takes no longer for a hostile name than for a plain one', () => {
    const name = 'a/'.repeat(5000)
    const begun = performance.now()
    for (let round = 0; round < 100; round += 1) covers('a/a/a/*', name)
    expect(performance.now() - begun).toBeLessThan(500)
  })
})
