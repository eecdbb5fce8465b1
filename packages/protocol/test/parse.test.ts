import { describe, expect, test } from 'vitest'
import { createParser, type Parser, type ParserOptions } from '../src/parse.ts'
import { type Seen, specParse } from './spec-parser.ts'

const message = (data: string, id = ''): Seen => ({ type: 'message', data, id })

/** One stream per rule of the standard and per choice of §6, with all that a reader is told. */
const rules: { rule: string; stream: string; seen: Seen[] }[] = [
  // Lines
  { rule: 'LF ends a line', stream: 'data: a\n\n', seen: [message('a')] },
  { rule: 'CR ends a line', stream: 'data: a\r\r', seen: [message('a')] },
  { rule: 'CRLF ends one line, not two', stream: 'data: a\r\ndata: b\r\n\r\n', seen: [message('a\nb')] },
  { rule: 'LF and CR end two lines', stream: 'data: a\n\rdata: b\n\n', seen: [message('a'), message('b')] },
  {
    rule: 'line ends can change within a stream',
    stream: 'data: a\rdata: b\ndata: c\r\n\r',
    seen: [message('a\nb\nc')],
  },
  { rule: 'CRLF and a lone LF end an event', stream: 'data: a\r\n\ndata: b\r\n\n', seen: [message('a'), message('b')] },
  {
    rule: 'other line separators are text',
    stream: 'data: a\u2028b\u0085c\vd\n\n',
    seen: [message('a\u2028b\u0085c\vd')],
  },

  // The byte order mark
  { rule: 'one leading BOM is dropped', stream: '\uFEFFdata: a\n\n', seen: [message('a')] },
  { rule: 'a second BOM is text', stream: '\uFEFF\uFEFFdata: a\n\ndata: b\n\n', seen: [message('b')] },
  { rule: 'a BOM inside is text', stream: 'data: \uFEFFa\n\n\uFEFFdata: b\n\n', seen: [message('\uFEFFa')] },
  { rule: 'a stream can be a BOM alone', stream: '\uFEFF', seen: [] },

  // Fields
  { rule: 'one space after the colon is dropped', stream: 'data: a\n\n', seen: [message('a')] },
  { rule: 'no space after the colon is needed', stream: 'data:a\n\n', seen: [message('a')] },
  { rule: 'a second space is text', stream: 'data:  a\n\n', seen: [message(' a')] },
  { rule: 'a tab after the colon is text', stream: 'data:\ta\n\n', seen: [message('\ta')] },
  { rule: 'a space at the end is text', stream: 'data: a \n\n', seen: [message('a ')] },
  { rule: 'the first colon is the one that counts', stream: 'data: a: b\n\n', seen: [message('a: b')] },
  { rule: 'a field without a colon is empty', stream: 'data\n\n', seen: [message('')] },
  { rule: 'field names have a case', stream: 'DATA: a\nData: b\ndata: c\n\n', seen: [message('c')] },
  { rule: 'field names are whole', stream: 'dat: a\ndata2: b\n data: c\ndata : d\ndata: e\n\n', seen: [message('e')] },
  { rule: 'unknown fields are ignored', stream: 'name: a\nname\ndata: b\n\n', seen: [message('b')] },
  { rule: 'an unknown field alone is no event', stream: 'name: a\n\n', seen: [] },

  // Data
  { rule: 'lines of data are joined with LF', stream: 'data: a\ndata:\ndata: b\n\n', seen: [message('a\n\nb')] },
  { rule: 'empty data is an event', stream: 'data:\n\ndata: \n\n', seen: [message(''), message('')] },
  { rule: 'two empty lines of data are one LF', stream: 'data\ndata\n\n', seen: [message('\n')] },
  { rule: 'NUL may stand in data', stream: 'data: a\0b\n\n', seen: [message('a\0b')] },
  { rule: 'blank lines between events say nothing', stream: '\n\n\ndata: a\n\n\n\n', seen: [message('a')] },
  { rule: 'a block without data is no event', stream: 'event: a\n\ndata: b\n\n', seen: [message('b')] },

  // Types
  { rule: 'an event has the type it names', stream: 'event: a\ndata: b\n\n', seen: [{ type: 'a', data: 'b', id: '' }] },
  { rule: 'the type may follow the data', stream: 'data: b\nevent: a\n\n', seen: [{ type: 'a', data: 'b', id: '' }] },
  { rule: 'the last type wins', stream: 'event: a\nevent: b\ndata: c\n\n', seen: [{ type: 'b', data: 'c', id: '' }] },
  {
    rule: 'an empty type is message',
    stream: 'event: a\nevent:\ndata: b\n\nevent\ndata: c\n\n',
    seen: [message('b'), message('c')],
  },
  {
    rule: 'a type is forgotten after its event',
    stream: 'event: a\ndata: b\n\ndata: c\n\n',
    seen: [{ type: 'a', data: 'b', id: '' }, message('c')],
  },

  // Ids
  { rule: 'an event has the id it names', stream: 'id: 7\ndata: a\n\n', seen: [message('a', '7')] },
  { rule: 'the id may follow the data', stream: 'data: a\nid: 7\n\n', seen: [message('a', '7')] },
  {
    rule: 'an id stays until another comes',
    stream: 'id: 7\ndata: a\n\ndata: b\n\n',
    seen: [message('a', '7'), message('b', '7')],
  },
  { rule: 'the last id of a block wins', stream: 'id: 7\nid: 8\ndata: a\n\n', seen: [message('a', '8')] },
  { rule: 'an id without data counts', stream: 'id: 7\n\ndata: a\n\n', seen: [{ id: '7' }, message('a', '7')] },
  { rule: 'an id without data counts with a type', stream: 'id: 7\nevent: a\n\n', seen: [{ id: '7' }] },
  { rule: 'an empty id resets', stream: 'id: 7\ndata: a\n\nid\ndata: b\n\n', seen: [message('a', '7'), message('b')] },
  {
    rule: 'a space alone is an empty id',
    stream: 'id: 7\ndata: a\n\nid: \ndata: b\n\n',
    seen: [message('a', '7'), message('b')],
  },
  {
    rule: 'an id with NUL is ignored',
    stream: 'id: 7\ndata: a\n\nid: 8\0\ndata: b\n\n',
    seen: [message('a', '7'), message('b', '7')],
  },
  {
    rule: 'an id with NUL leaves an earlier one of its block',
    stream: 'id: 7\nid: 8\0\ndata: a\n\n',
    seen: [message('a', '7')],
  },
  { rule: 'an id may have any other character', stream: 'id: é €😀\ndata: a\n\n', seen: [message('a', 'é €😀')] },

  // Retry
  { rule: 'retry is told', stream: 'retry: 3000\n\n', seen: [{ retry: 3000 }] },
  { rule: 'retry needs no blank line', stream: 'retry: 3000\n', seen: [{ retry: 3000 }] },
  {
    rule: 'retry comes before the event of its block',
    stream: 'data: a\nretry:10\n\n',
    seen: [{ retry: 10 }, message('a')],
  },
  { rule: 'leading zeros of retry are decimal', stream: 'retry: 03000\n', seen: [{ retry: 3000 }] },
  { rule: 'retry may be nothing', stream: 'retry: 0\n', seen: [{ retry: 0 }] },
  { rule: 'an empty retry is ignored', stream: 'retry:\nretry\nretry: \n', seen: [] },
  {
    rule: 'a retry that is not all digits is ignored',
    stream: 'retry: 1000x\nretry: -1\nretry: 1.5\nretry: 1e3\nretry:  1\nretry: +1\n',
    seen: [],
  },
  { rule: 'digits of other scripts are no digits', stream: 'retry: ١٢\n', seen: [] },
  {
    rule: 'a retry no timer can wait for is the longest',
    stream: `retry: 2147483648\nretry: ${'9'.repeat(400)}\n`,
    seen: [{ retry: 2147483647 }, { retry: 2147483647 }],
  },

  // Comments
  { rule: 'a comment is no event', stream: ': hb\n\n', seen: [{ comment: 'hb' }] },
  { rule: 'a comment may be empty', stream: ':\n', seen: [{ comment: '' }] },
  { rule: 'a comment keeps its colons', stream: '::a: b\n', seen: [{ comment: ':a: b' }] },
  {
    rule: 'a comment may stand within an event',
    stream: 'data: a\n: c\ndata: b\n\n',
    seen: [{ comment: 'c' }, message('a\nb')],
  },
  {
    rule: 'a comment moves no id',
    stream: 'id: 7\ndata: a\n\n: hb\n\ndata: b\n\n',
    seen: [message('a', '7'), { comment: 'hb' }, message('b', '7')],
  },

  // The end
  { rule: 'an event without its blank line is dropped', stream: 'data: a\n\ndata: b\n', seen: [message('a')] },
  {
    rule: 'an unfinished line is dropped',
    stream: 'data: a\n\nid: 7\n\nid: 8\ndata: b\n:',
    seen: [message('a'), { id: '7' }],
  },
  { rule: 'an unfinished retry is dropped', stream: 'retry: 1000', seen: [] },
  { rule: 'an empty stream is one', stream: '', seen: [] },
]

describe('the rules of event streams (§6)', () => {
  describe.each(rules)('$rule', ({ stream, seen }) => {
    test('in one piece', () => {
      expect(read([stream])).toEqual(seen)
    })

    test('character by character', () => {
      expect(read(stream.split(''))).toEqual(seen)
    })

    test('by the letter of the standard', () => {
      expect(specParse(stream).seen).toEqual(seen)
    })
  })
})

describe('a stream that arrives in pieces', () => {
  test('an event that ends in CR is delivered at once, without waiting for what comes next', () => {
    const reader = start()
    reader.parser.feed('data: a\r\r')
    expect(reader.seen).toEqual([message('a')])
  })

  test('an LF that opens a piece belongs to the CR before it', () => {
    expect(read(['data: a\r', '\ndata: b\r', '\n\r', '\ndata: c\r\r'])).toEqual([message('a\nb'), message('c')])
  })

  test('only the first LF belongs to the CR before it', () => {
    expect(read(['data: a\r', '\n\n', 'data: b\n\n'])).toEqual([message('a'), message('b')])
  })

  test('an empty piece between CR and LF changes nothing', () => {
    expect(read(['data: a\r', '', '\n', '\n'])).toEqual([message('a')])
  })

  test('a BOM is dropped also when the first piece is empty', () => {
    expect(read(['', '\uFEFF', 'data: a\n\n'])).toEqual([message('a')])
  })

  test('an LF after a leading BOM is a blank line', () => {
    expect(read(['\uFEFF', '\ndata: a\n\n'])).toEqual([message('a')])
  })

  test('a line of long and short pieces is put together in order', () => {
    const pieces = [
      'da',
      'ta: ',
      'a'.repeat(100),
      'b',
      'c',
      'd'.repeat(64),
      'e'.repeat(63),
      'f'.repeat(5000),
      'g',
      '\n',
      '\n',
    ]
    expect(read([...pieces, ...pieces])).toEqual([
      message(pieces.join('').slice(6, -2)),
      message(pieces.join('').slice(6, -2)),
    ])
  })

  test('a CR or a NUL is found however far into a long piece', () => {
    for (const length of [1000, 65_530, 65_536, 65_540, 200_000]) {
      const long = 'x'.repeat(length)
      const stream = `id: 1\ndata: ${long}\n\nid: 2\rdata: ${long}\rdata: y\r\rid: ${long}\0\ndata: z\n\nid: 4\ndata: end\n\n`
      expect(read([stream])).toEqual([
        message(long, '1'),
        message(`${long}\ny`, '2'),
        message('z', '2'),
        message('end', '4'),
      ])
    }
  })

  // Twice the work per doubling takes some milliseconds; four times the work per doubling takes minutes.
  test('a megabyte in single characters is read in a time that grows with its length', () => {
    const text = 'x'.repeat(1024 * 1024)
    expect(read(`data: ${text}\n\n`)).toEqual([message(text)])
  })

  test('a long text that ends its lines in CR is read in a time that grows with its length', () => {
    expect(read(['data: abcde\r\r'.repeat(500_000)])).toHaveLength(500_000)
  })
})

describe('the last event id', () => {
  test('starts with what the reader holds, and is that of events which name none', () => {
    const reader = start({ lastEventId: '7' })
    reader.parser.feed(': hello\n\nretry: 1\n\n\n\ndata: a\n\n')
    expect(reader.parser.lastEventId).toBe('7')
    expect(reader.seen).toEqual([{ comment: 'hello' }, { retry: 1 }, message('a', '7')])
  })

  test('moves at the blank line and not before', () => {
    const { parser } = start({ lastEventId: '7' })
    parser.feed('id: 8\ndata: a\n')
    expect(parser.lastEventId).toBe('7')
    parser.feed('\n')
    expect(parser.lastEventId).toBe('8')
  })

  test('is already that of the event while it is delivered', () => {
    const ids: string[] = []
    const parser: Parser = createParser({
      onEvent: () => ids.push(parser.lastEventId),
      onId: () => ids.push(parser.lastEventId),
    })
    parser.feed('id: 1\ndata: a\n\nid: 2\n\nid: 3\ndata: a\ndata: b\n\n')
    expect(ids).toEqual(['1', '2', '3'])
  })

  test('of a block that was cut off does not count', () => {
    const { parser } = start()
    parser.feed('id: 7\ndata: a\n\nid: 8\ndata: b\n')
    parser.end()
    expect(parser.lastEventId).toBe('7')
  })

  test('is told when it moves without an event, also when it moves to nothing', () => {
    expect(read(['id: 7\n\n', 'id\n\n', '\n', ': hb\n\n'])).toEqual([{ id: '7' }, { id: '' }, { comment: 'hb' }])
  })
})

describe('the end of a stream', () => {
  test('drops the unfinished block, and the next stream starts afresh with the last id', () => {
    const reader = start()
    reader.parser.feed('id: 7\ndata: a\n\nid: 8\nevent: t\ndata: b\ndata: c')
    reader.parser.end()
    reader.parser.feed('\uFEFFdata: d\n\n')
    expect(reader.seen).toEqual([message('a', '7'), message('d', '7')])
  })

  test('is also the end of a CR: an LF that opens the next stream is a blank line', () => {
    const reader = start()
    reader.parser.feed('data: a\r')
    reader.parser.end()
    reader.parser.feed('\ndata: b\n\n')
    expect(reader.seen).toEqual([message('b')])
  })
})

describe('a parser that is stopped', () => {
  test.each([
    ['an event', 'data: a\n\ndata: b\n\nid: 9\n\n'],
    ['an event of several lines', 'data: a\ndata: a\n\ndata: b\n\nid: 9\n\n'],
    ['an id', 'id: 1\n\ndata: b\n\nid: 9\n\n'],
    ['a comment', ': c\n\ndata: b\n\nid: 9\n\n'],
    ['a retry', 'retry: 1\ndata: b\n\nid: 9\n\n'],
  ])('by the handler of %s is silent for the rest of the piece and for all that follow', (_, stream) => {
    let calls = 0
    const stop = () => {
      calls += 1
      parser.stop()
    }
    const parser: Parser = createParser({ onEvent: stop, onId: stop, onComment: stop, onRetry: stop })
    parser.feed(stream)
    parser.feed('data: c\n\n')
    parser.end()
    parser.feed('data: d\n\n')
    expect(calls).toBe(1)
    expect(parser.lastEventId).not.toBe('9')
  })

  test('by an error in a handler passes the error on, and no later event slips past the one that failed', () => {
    const seen: string[] = []
    const parser = createParser({
      onEvent: ({ data }) => {
        seen.push(data)
        if (data === 'b') throw new Error('handler')
      },
    })
    expect(() => parser.feed('id: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 3\ndata: c\n\n')).toThrow('handler')
    parser.feed('id: 4\ndata: d\n\n')
    expect(seen).toEqual(['a', 'b'])
    expect(parser.lastEventId).toBe('2')
  })
})

describe('the limit of an event', () => {
  const limit = 20
  const x = (length: number) => 'x'.repeat(length)

  test.each([
    ['a line of data', `data: ${x(15)}\n\n`],
    ['a comment', `: ${x(19)}\n\n`],
    ['a line without an end', x(21)],
    ['lines of data, counted together', `data: ${x(5)}\ndata: ${x(3)}\n\n`],
    ['data and what follows it in its block', `data: ${x(5)}\n: ${x(7)}\n\n`],
  ])('rejects %s, in whatever pieces it comes', (_, stream) => {
    for (const pieces of [[stream], stream.split(''), [stream.slice(0, 9), stream.slice(9)]]) {
      const reader = start({ maxEventLength: limit })
      reader.parser.feed('id: 7\ndata: before\n\n')
      expect(() => pieces.forEach(reader.parser.feed)).toThrow(rejection)
      reader.parser.feed('\n\nid: 8\ndata: after\n\n')
      expect(reader.seen.filter((one) => 'data' in one)).toEqual([message('before', '7')])
      expect(reader.parser.lastEventId).toBe('7')
    }
  })

  test.each([
    ['a line of data', `data: ${x(14)}\n\n`, 1],
    ['a comment', `: ${x(18)}\n\n`, 1],
    ['lines of data, counted together', `data: ${x(5)}\ndata: ${x(2)}\n\n`, 1],
    ['any number of events', 'data: a\n\n'.repeat(50), 50],
    ['any number of comments', ': hb\n'.repeat(50), 50],
    ['any number of lines before the data', `${'id: 12345\n'.repeat(50)}data: a\n\n`, 1],
  ])('lets %s pass that it allows, in whatever pieces it comes', (_, stream, count) => {
    for (const pieces of [[stream], stream.split('')]) {
      expect(read(pieces, { maxEventLength: limit })).toHaveLength(count)
    }
  })

  test('is 16 Mi characters by default', () => {
    const line = `data: ${'x'.repeat(16 * 1024 * 1024 - 6)}`
    expect(read([line, '\n\n'])).toHaveLength(1)
    expect(() => read([line, 'x'])).toThrow(rejection)
  })

  test.each([0, -1, Number.NaN])('of %s is rejected when the parser is made', (maxEventLength) => {
    expect(() => start({ maxEventLength })).toThrow(expect.objectContaining({ code: 'invalid-option' }))
  })

  const rejection = expect.objectContaining({ name: 'RejoinError', code: 'too-large', retryable: false })
})

test('only an event handler is needed', () => {
  const events: unknown[] = []
  const parser = createParser({ onEvent: (event) => events.push(event) })
  parser.feed('retry: 1\n: c\n\nid: 7\n\ndata: a\n\n')
  expect(events).toEqual([message('a', '7')])
})

function read(pieces: Iterable<string>, options: Partial<ParserOptions> = {}): Seen[] {
  const { parser, seen } = start(options)
  for (const piece of pieces) parser.feed(piece)
  parser.end()
  return seen
}

function start(options: Partial<ParserOptions> = {}): { parser: Parser; seen: Seen[] } {
  const seen: Seen[] = []
  const parser = createParser({
    onEvent: (event) => seen.push(event),
    onId: (id) => seen.push({ id }),
    onRetry: (retry) => seen.push({ retry }),
    onComment: (comment) => seen.push({ comment }),
    ...options,
  })
  return { parser, seen }
}
