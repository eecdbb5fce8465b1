import { expect, test } from 'vitest'
import type { NewEvent } from '../../src/log/contract.ts'
import { rejectRetaining } from '../../src/log/retained.ts'

test('a batch over a thousand channels that retain its values is judged in one pass (§5.9)', () => {
  let looks = 0
  const entries = Array.from({ length: 1000 }, (_, index): NewEvent => {
    return {
      get channel() {
        looks += 1
        return `prices/${index}`
      },
      ...{ type: 'message', data: 'x', key: 'k' },
    }
  })
  const nothing = () => undefined
  expect(rejectRetaining(entries, () => ({ keys: 0, bytes: 0 }), nothing)).toBeUndefined()
  expect(looks).toBeLessThanOrEqual(3 * entries.length)
})

test('a batch is rejected for the channel that would retain too much, though others of the batch would not (§5.9)', () => {
  const entry = (channel: string, key: string) => ({ channel, type: 'message', data: 'x', key })
  const sizeOf = (channel: string) => ({ keys: channel === 'full' ? 1000 : 0, bytes: 0 })
  const rejection = rejectRetaining([entry('empty', 'a'), entry('full', 'b')], sizeOf, () => undefined)
  expect(rejection?.message).toContain('full would retain more than 1000 keys')
  const forgetting = [entry('full', 'b'), { ...entry('full', 'b'), forget: true }]
  expect(rejectRetaining(forgetting, sizeOf, () => undefined)).toBeUndefined()
})
