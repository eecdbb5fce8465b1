import { describe, expect, test } from 'vitest'
import { encodeComment, encodeEvent, encodeRetry } from '../src/encode.ts'
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
