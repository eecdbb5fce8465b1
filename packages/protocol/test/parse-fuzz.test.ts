import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { encodeComment, encodeEvent, encodeRetry, normaliseData } from '../src/encode.ts'
import { RejoinError } from '../src/errors.ts'
import { isIdText } from '../src/id-text.ts'
import { createParser, type Parser } from '../src/parse.ts'
import { type Seen, specParse } from './spec-parser.ts'

const runs = { numRuns: 10_000, seed: 20_260_731 }

/** Streams that are nearly well-formed, because random text hardly ever reaches a rule. */
const streams = fc
  .array(
    fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom('\n', '\r', '\r\n', '\n\n', '\r\r', '\r\n\r\n', '\n\r') },
      { weight: 4, arbitrary: fc.constantFrom(':', ' ', ': ', '\0', '\uFEFF') },
      { weight: 6, arbitrary: fc.constantFrom('id', 'data', 'event', 'retry', 'ID', 'dat', 'name') },
      { weight: 8, arbitrary: fc.constantFrom('data: ', 'data:', 'id: ', 'id:', 'event: ', 'event:', 'retry: ') },
      {
        weight: 4,
        arbitrary: fc.constantFrom('0', '7', '250', '99999999999', 'a', 'é', '€', '😀', '\ud83d', '\udc00'),
      },
      { weight: 4, arbitrary: fc.constantFrom('data: a\n\n', 'id: 1\ndata: b\n\n', 'id: 2\nevent: t\ndata: c\n\n') },
      {
        weight: 2,
        arbitrary: fc.constantFrom(': hb\n\n', 'retry: 10\n', 'id: 3\n\n', 'event: t\nid: 4\ndata: d\r\n\r\n'),
      },
      { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 8 }) },
      { weight: 1, arbitrary: fc.integer({ min: 60, max: 70 }).map((length) => 'x'.repeat(length)) },
    ),
    { maxLength: 24 },
  )
  .map((parts) => parts.join(''))

const cutPlaces = fc.array(fc.nat(200), { maxLength: 12 })

describe('a parser given a random stream', { timeout: 60_000 }, () => {
  test('sees what the standard sees, wherever the stream is cut', () => {
    fc.assert(
      fc.property(streams, cutPlaces, fc.constantFrom('', '7'), (stream, places, lastEventId) => {
        const expected = specParse(stream, lastEventId)
        for (const pieces of [[stream], cut(stream, places), stream.split('')]) {
          expectSame(read(pieces, { lastEventId }), { ...expected, rejected: false })
        }
      }),
      runs,
    )
  })

  test('sees what the standard sees when its parts are very long', () => {
    const lengths = fc.constantFrom(1000, 1030, 65_500, 65_536, 66_000, 140_000)
    fc.assert(
      fc.property(streams, streams, streams, lengths, lengths, (first, second, third, a, b) => {
        const stream = first + 'x'.repeat(a) + second + 'y'.repeat(b) + third
        const expected = { ...specParse(stream), rejected: false }
        expectSame(read([stream]), expected)
        expectSame(read(cut(stream, [first.length + 3, a, a + b])), expected)
      }),
      { ...runs, numRuns: 300 },
    )
  })

  test('rejects a large event after the same events, wherever the stream is cut', () => {
    fc.assert(
      fc.property(streams, cutPlaces, fc.integer({ min: 1, max: 30 }), (stream, places, maxEventLength) => {
        const whole = read([stream], { maxEventLength })
        expectSame(read(cut(stream, places), { maxEventLength }), whole)
        expectSame(read(stream.split(''), { maxEventLength }), whole)
      }),
      runs,
    )
  })
})

describe('an event that is encoded and parsed', { timeout: 60_000 }, () => {
  const texts = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({
      unit: fc.constantFrom(
        '\r',
        '\n',
        '\0',
        ' ',
        ':',
        '\uFEFF',
        '\ud83d',
        '\udc00',
        'a',
        'é',
        '😀',
        'data: ',
        'id: 6\n',
      ),
    }),
  )
  const ids = fc.string({
    unit: fc.constantFrom(..."0123456789ABCDEFabcdef-_.!#$%&'*+/;=^`|~"),
    minLength: 1,
    maxLength: 128,
  })

  test('has the same id, the same type and its normalised data (§4.3, §5.4)', () => {
    fc.assert(
      fc.property(ids, fc.constantFrom('message', 'order shipped', ' é😀', ':'), texts, (id, type, data) => {
        const frame = encodeEvent({ id, type, data })
        expectSame(read([throughBytes(frame)]).seen, [{ type, data: normaliseData(data), id }])
        expectSame(read([frame, frame]).seen.length, 2)
      }),
      runs,
    )
  })

  test('is rejected, or is one event with just that id and type, whatever they are', () => {
    fc.assert(
      fc.property(fc.oneof(texts, ids), texts, texts, (id, type, data) => {
        const frame = rejectedOr(() => encodeEvent({ id, type, data }))
        if (frame === 'rejected') expectSame(isIdText(id) && type !== '' && !/[\r\n\0]/.test(type), false)
        else expectSame(read([frame]).seen, [{ type, data: data.replace(/\r\n?/g, '\n'), id }])
      }),
      runs,
    )
  })

  test('is not touched by comments and waits around it, whatever they are', () => {
    fc.assert(
      fc.property(texts, fc.oneof(fc.double(), fc.nat()), (text, ms) => {
        const comment = rejectedOr(() => encodeComment(text))
        const retry = rejectedOr(() => encodeRetry(ms))
        const around = [comment, retry].map((frame) => (frame === 'rejected' ? '' : frame))
        const { seen } = read([...around, 'id: 1\ndata: a\n\n', ...around])
        expectSame(
          seen.filter((one) => 'data' in one || 'id' in one),
          [{ type: 'message', data: 'a', id: '1' }],
        )
        if (comment !== 'rejected') expectSame(read([comment]).seen, [{ comment: text }])
        if (retry !== 'rejected') expectSame(read([retry]).seen, [{ retry: Math.abs(ms) }])
      }),
      runs,
    )
  })
})

/** Asks `expect` only to tell the difference: of a hundred thousand comparisons it would take most of the time. */
function expectSame(got: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(got, expected)) expect(got).toEqual(expected)
}

function read(
  pieces: readonly string[],
  options: { lastEventId?: string; maxEventLength?: number } = {},
): { seen: Seen[]; lastEventId: string; rejected: boolean } {
  const seen: Seen[] = []
  const parser: Parser = createParser({
    onEvent: (event) => seen.push(event),
    onId: (id) => seen.push({ id }),
    onRetry: (retry) => seen.push({ retry }),
    onComment: (comment) => seen.push({ comment }),
    ...options,
  })
  const rejected = rejectedOr(() => {
    for (const piece of pieces) parser.feed(piece)
    parser.end()
    return 'read'
  })
  return { seen, lastEventId: parser.lastEventId, rejected: rejected === 'rejected' }
}

function rejectedOr(make: () => string): string {
  try {
    return make()
  } catch (error) {
    if (error instanceof RejoinError) return 'rejected'
    throw error
  }
}

function cut(text: string, places: readonly number[]): string[] {
  const sorted = [0, ...places.map((place) => Math.min(place, text.length)).sort((a, b) => a - b), text.length]
  return sorted.slice(1).map((end, index) => text.slice(sorted[index], end))
}

/** What a client decodes of what a hub sends. */
function throughBytes(text: string): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(new TextEncoder().encode(text))
}
