import { expect, test } from 'vitest'
import { bodyOf, createInternedNames, isFedAfter, parseEntry } from '../../../src/log/redis/entry.ts'

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
  const names = createInternedNames()
  for (const [id, value] of entries) expect(parseEntry(id, value, names)).toEqual(parseEntry(id, value))
})

test('text is told from JSON, with a key and without, and a hub of an earlier version reads past the sign', () => {
  const at = (kind: 'e' | 'k' | 'l', event: Parameters<typeof bodyOf>[1]) => `0-0 0-0 0 0\n${bodyOf(kind, event)}`
  const json = { channel: 'a', type: 'tick', data: '1 ' }
  const text = { ...json, content: 'text' } as const
  for (const event of [json, { ...json, data: ' ' }, text, { ...text, data: '' }]) {
    expect(parseEntry('1-0', at('e', event)).event).toMatchObject(event)
    const keyed = { ...event, key: 'a "key" ' }
    expect(parseEntry('1-0', at('k', keyed)).event).toMatchObject(keyed)
  }
  expect(parseEntry('1-0', at('e', json)).event).not.toHaveProperty('content')
  expect(parseEntry('1-0', at('e', text)).event).not.toHaveProperty('key')
  expect(parseEntry('1-0', at('l', text)).event).toMatchObject({ ...text, live: true })
  // As such a hub does: the key is what stands on the third line, read as JSON, if anything stands there.
  const keyLine = (kind: 'e' | 'k', key?: string) => bodyOf(kind, { ...text, ...(key && { key }) }).split('\n')[2] ?? ''
  expect(JSON.parse(keyLine('e'))).toBe('')
  expect(JSON.parse(keyLine('k', 'price'))).toBe('price')
})

test('no channel or type is taken for another, however many there are', () => {
  const names = createInternedNames()
  for (let number = 0; number < 10_000; number += 1) {
    const [id, value] = stored(`1-${number}`, '0-0', '0-0', {
      channel: `channel/${number % 5000}`,
      type: `type-${number % 300}`,
      data: '',
    })
    const { event } = parseEntry(id, value, names)
    expect([event.channel, event.type]).toEqual([`channel/${number % 5000}`, `type-${number % 300}`])
  }
})

test('an entry that follows another position in the feed is not taken for the next one', () => {
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
