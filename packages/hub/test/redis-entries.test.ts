import { expect, test } from 'vitest'
import { bodyOf, isFedAfter, parseEntry } from '../src/log/redis/entry.ts'
import { createFamiliar } from '../src/log/redis/familiar.ts'

test('an entry says the same, whatever came before it in the feed', () => {
  const entries = [
    stored('1700000000000-0', '0-0', '0-0', { channel: 'a', type: 'tick', data: '1' }),
    stored('1700000000000-1', '1700000000000-0', '1700000000000-0', { channel: 'a', type: 'tick', data: '2' }),
    // Its predecessor is not the one that this feed brought last: a live one came between.
    stored('1700000000000-3', '1700000000000-2', '1700000000000-1', { channel: 'a', type: 'ticks', data: '3\n4' }),
    stored('1700000000001-0', '1700000000000-3', '0-0', { channel: 'ab', type: '', data: 'é 🦊' }),
    stored('1700000000001-1', '1700000000001-0', '1700000000000-3', { channel: 'a', type: 'tick', data: '' }),
    stored('1700000000001-2', '1700000000001-1', '1700000000001-0', {
      channel: 'ab',
      type: 'a type of more letters than are copied',
      data: '5',
    }),
  ] as const
  const familiar = createFamiliar()
  for (const [id, value] of entries) expect(parseEntry(id, value, familiar)).toEqual(parseEntry(id, value))
})

test('of many channels and types none is taken for another', () => {
  const familiar = createFamiliar()
  for (let number = 0; number < 10_000; number += 1) {
    const [id, value] = stored(`1-${number}`, '0-0', '0-0', {
      channel: `channel/${number % 5000}`,
      type: `type-${number % 300}`,
      data: '',
    })
    const { event } = parseEntry(id, value, familiar)
    expect([event.channel, event.type]).toEqual([`channel/${number % 5000}`, `type-${number % 300}`])
  }
})

test('an entry that was fed after another place is not taken for the next one', () => {
  const [, value] = stored('5-0', '4-12', '0-0', { channel: 'a', type: 'tick', data: '' })
  expect(isFedAfter(value, '4-12')).toBe(true)
  for (const other of ['4-1', '4-123', '4-2', '', '4-12 ']) expect(isFedAfter(value, other)).toBe(false)
})

function stored(
  id: string,
  fedAfter: string,
  previous: string,
  event: { channel: string; type: string; data: string },
) {
  return [id, `${fedAfter} ${previous} 0 0\n${bodyOf('e', event)}`] as const
}
