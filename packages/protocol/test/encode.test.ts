import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { encodeComment, encodeEvent, encodeRetry, normaliseData } from '../src/encode.ts'
import { isIdText } from '../src/id-text.ts'

const rejection = expect.objectContaining({ name: 'RejoinError', code: 'invalid-event', retryable: false })

describe('a frame (§4.3)', () => {
  test('has its fields in order, each on its line, and an empty line at the end', () => {
    expect(encodeEvent({ id: '01JCR', type: 'order_update', data: '{"a":1}' })).toBe(
      'id: 01JCR\nevent: order_update\ndata: {"a":1}\n\n',
    )
  })

  test('names no type when it is message', () => {
    expect(encodeEvent({ id: '7', type: 'message', data: 'a' })).toBe('id: 7\ndata: a\n\n')
  })

  test('without an id moves no cursor', () => {
    expect(encodeEvent({ type: 'hello', data: 'a' })).toBe('event: hello\ndata: a\n\n')
  })

  test.each([
    ['a\nb', 'data: a\ndata: b\n\n'],
    ['a\rb', 'data: a\ndata: b\n\n'],
    ['a\r\nb', 'data: a\ndata: b\n\n'],
    ['a\n\rb', 'data: a\ndata: \ndata: b\n\n'],
    ['\n', 'data: \ndata: \n\n'],
    ['a\n', 'data: a\ndata: \n\n'],
    ['a\n\nid: 9\n\n', 'data: a\ndata: \ndata: id: 9\ndata: \ndata: \n\n'],
  ])('splits the data %j at its line ends', (data, lines) => {
    expect(encodeEvent({ id: '7', type: 'message', data })).toBe(`id: 7\n${lines}`)
  })

  test('has one empty line of data when the data is empty', () => {
    expect(encodeEvent({ id: '7', type: 'message', data: '' })).toBe('id: 7\ndata: \n\n')
  })

  test('keeps a space, a colon and a NUL of the data as they are', () => {
    expect(encodeEvent({ id: '7', type: 'message', data: ' : \0' })).toBe('id: 7\ndata:  : \0\n\n')
  })

  test.each(['', ' ', 'a b', 'a\nb', 'a\rb', 'a\0b', 'é', 'a:b', 'a,b', 'x'.repeat(129)])('rejects the id %j', (id) => {
    expect(() => encodeEvent({ id, type: 'message', data: 'a' })).toThrow(rejection)
    expect(() => encodeEvent({ id, type: 'message', data: 'a' })).toThrow('encode it first')
  })

  test.each(['', 'a\nb', 'a\rb', 'a\0b', '\n', 'message\n'])('rejects the type %j', (type) => {
    expect(() => encodeEvent({ id: '7', type, data: 'a' })).toThrow(rejection)
    expect(() => encodeEvent({ id: '7', type, data: 'a' })).toThrow('Put such text into the data')
  })
})

describe('a comment', () => {
  test.each([
    ['hb', ': hb\n\n'],
    ['', ': \n\n'],
    [': é', ': : é\n\n'],
  ])('%j is one line', (text, frame) => {
    expect(encodeComment(text)).toBe(frame)
  })

  test.each(['a\nb', 'a\r', '\0'])('%j is rejected', (text) => {
    expect(() => encodeComment(text)).toThrow(rejection)
    expect(() => encodeComment(text)).toThrow('Send one comment per line')
  })
})

describe('a wait', () => {
  test.each([0, 2000, 2 ** 31 - 1])('of %s ms is a field of its own', (ms) => {
    expect(encodeRetry(ms)).toBe(`retry: ${ms}\n`)
  })

  test.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1e21, 2 ** 31])('of %s ms is rejected', (ms) => {
    expect(() => encodeRetry(ms)).toThrow(rejection)
    expect(() => encodeRetry(ms)).toThrow('whole number from 0 to 2147483647')
  })
})

describe('the text of an id (§2.6)', () => {
  test('is printable ASCII without a space and without what breaks a request', () => {
    const forbidden = ' "():<>?@[\\]{},'
    for (let code = 0; code < 0x300; code += 1) {
      const character = String.fromCharCode(code)
      const right = code > 0x20 && code < 0x7f && !forbidden.includes(character)
      expect([character, isIdText(character)]).toEqual([character, right])
      expect([character, isIdText(`a${character}b`)]).toEqual([character, right])
    }
  })

  test('has 1 to 128 characters', () => {
    expect([0, 1, 128, 129].map((length) => isIdText('a'.repeat(length)))).toEqual([false, true, true, false])
  })

  test('does not end in a line break', () => {
    expect(isIdText('a\n')).toBe(false)
  })
})

describe('data as a log keeps it (§5.4)', () => {
  test.each([
    ['CRLF becomes LF', 'a\r\nb', 'a\nb'],
    ['CR becomes LF', 'a\rb\r', 'a\nb\n'],
    ['LF stays', 'a\n\nb', 'a\n\nb'],
    ['CR, CRLF and LF in a row stay three line ends', '\r\r\n\n', '\n\n\n'],
    ['LF and CR are two line ends', '\n\r', '\n\n'],
    ['a lone high surrogate becomes U+FFFD', 'a\ud83db', 'a\ufffdb'],
    ['a lone low surrogate becomes U+FFFD', 'a\udc00', 'a\ufffd'],
    ['surrogates in the wrong order become two', '\udc00\ud83d', '\ufffd\ufffd'],
    ['a surrogate parted from its other half by CRLF is lone', '\ud83d\r\n\udc00', '\ufffd\n\ufffd'],
    ['a pair stays', '😀', '😀'],
    ['nothing else is touched', ' \0\t\u2028\uFEFF{"a": 1} ', ' \0\t\u2028\uFEFF{"a": 1} '],
    ['empty data stays empty', '', ''],
  ])('%s', (_, text, normal) => {
    expect(normaliseData(text)).toBe(normal)
  })

  test('is what comes back from its bytes, and stays the same when it is normalised again', () => {
    const texts = fc.string({
      unit: fc.constantFrom('\r', '\n', '\r\n', '\ud83d', '\udc00', '😀', 'a', '\0', '\uFEFF'),
    })
    fc.assert(
      fc.property(texts, (text) => {
        const normal = normaliseData(text)
        expect(normal).not.toContain('\r')
        expect(new TextDecoder('utf-8', { ignoreBOM: true }).decode(new TextEncoder().encode(normal))).toBe(normal)
        expect(normaliseData(normal)).toBe(normal)
        expect(normal.split('\n')).toHaveLength(text.split(/\r\n|\r|\n/).length)
      }),
      { seed: 54, numRuns: 2000 },
    )
  })
})
