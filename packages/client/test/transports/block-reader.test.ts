import { getHeapStatistics } from 'node:v8'
import { createParser } from '@rejoin/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createBlockReader } from '../../src/transports/block-reader.ts'
import { collectGarbage } from '../support/garbage.ts'

const piece = fc.constantFrom(
  ...[
    '\n',
    '\n',
    '\n\n',
    '\r',
    '\r\n',
    '\r\n\r\n',
    ':',
    ': ',
    ' ',
    '\uFEFF',
    '\0',
    'x',
    'é🐙',
    '1000',
    'retry: 5',
    'retry:',
  ],
  ...[
    'data',
    'data:',
    'data: ',
    'data: 1',
    'data:  2',
    'id',
    'id:',
    'id: ',
    'id: a',
    'id: b\0',
    'event',
    'event: ',
    'event: t',
  ],
  ...[': comment', 'Data: no', 'dataset: no', 'retry: 1x', 'retry: 07', 'data: a:b'],
)

test('a stream is read as the parser of the protocol reads it, wherever it is cut (§6)', () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), fc.array(fc.nat(60), { maxLength: 12 }), (pieces, cuts) => {
      const text = pieces.join('')
      expect(small(text, cuts)).toEqual(large(text))
    }),
    { seed: 63, numRuns: 5000 },
  )
})

test('a line in very many pieces is read in time that grows with its length', () => {
  const blocks: unknown[] = []
  const read = createBlockReader(
    (block) => blocks.push(block),
    () => undefined,
  )
  read('data: ')
  for (let n = 0; n < 500_000; n++) read('x')
  read('\n\n')
  expect(blocks).toEqual([{ type: 'message', data: 'x'.repeat(500_000), id: '' }])
})

test('an event that does not end, in one line or in many, is noticed; comments may go on for ever', () => {
  const mega = 'x'.repeat(1024 * 1024)
  const fed = (part: string) => {
    const read = createBlockReader(
      () => undefined,
      () => undefined,
    )
    return Array.from({ length: 20 }, () => read(part)).indexOf(false)
  }
  expect(fed(mega)).toBe(16)
  expect(fed(`data: ${mega}\n`)).toBe(15)
  expect(fed(`: ${mega}\n`)).toBe(-1)
  expect(fed(`data: ${mega}\n\n`)).toBe(-1)
})

test('an id does not keep in memory the large event that it came with', () => {
  const ids: string[] = []
  const read = createBlockReader(
    ({ id }) => ids.push(id),
    () => undefined,
  )
  const data = 'x'.repeat(100_000)
  const idOf = (n: number) => `01JCQ00000000000000000${1000 + n}`
  collectGarbage()
  const before = getHeapStatistics().used_heap_size
  // As a decoder gives it: in one piece.
  for (let n = 0; n < 500; n++) read(Buffer.from(`id: ${idOf(n)}\ndata: ${data}\n\n`).toString('latin1'))
  collectGarbage()
  expect(getHeapStatistics().used_heap_size - before).toBeLessThan(10_000_000)
  expect([ids.length, ids[499]]).toEqual([500, idOf(499)])
})

function small(text: string, cuts: number[]): unknown[] {
  const seen: unknown[] = []
  const read = createBlockReader(
    (block) => seen.push(block),
    (ms) => seen.push(ms),
  )
  const bytes = new TextEncoder().encode(text)
  const decoder = new TextDecoder()
  let from = 0
  for (const to of [...cuts, bytes.length].sort((a, b) => a - b)) {
    read(decoder.decode(bytes.subarray(from, to), { stream: true }))
    from = Math.max(from, to)
  }
  return seen
}

function large(text: string): unknown[] {
  const seen: unknown[] = []
  const parser = createParser({
    onEvent: (event) => seen.push(event),
    onId: (id) => seen.push({ id }),
    onRetry: (ms) => seen.push(ms),
  })
  parser.feed(text)
  return seen
}
