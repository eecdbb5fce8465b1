import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readTxt } from '../src/txt.ts'

const read = (...strings: string[]) => readTxt(strings.map((each) => Buffer.from(each)))

test('keys have values, empty values, or none', () => {
  expect(read('path=/a=b', 'empty=', 'flag')).toEqual({ path: '/a=b', empty: '', flag: null })
})

test('of a key that comes twice, in any case, the first counts', () => {
  expect(read('Path=1', 'path=2', 'PATH')).toEqual({ Path: '1' })
})

test('a string without a key, and a key that is not printable ASCII, are passed over', () => {
  expect(read('=x', '', 'a\nb=1', 'é=1', '\u0000=1')).toEqual({})
})

test('the same keys in another order are the same text', () => {
  expect(JSON.stringify(read('b=2', 'a=1'))).toBe(JSON.stringify(read('a=1', 'b=2')))
})

test('a key named __proto__ is a key like any other', () => {
  const txt = read('__proto__=1', 'constructor=2')
  expect(JSON.stringify(txt)).toBe('{"__proto__":"1","constructor":"2"}')
  expect(Object.getPrototypeOf(txt)).toBe(Object.prototype)
})

test('whatever bytes are announced, the result is well-formed text that survives JSON', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 255 }), { maxLength: 300 }), (strings) => {
      const text = JSON.stringify(readTxt(strings))
      expect(text.isWellFormed()).toBe(true)
      for (const [key, value] of Object.entries(JSON.parse(text) as Record<string, string | null>)) {
        expect(key).toMatch(/^[\x20-\x3c\x3e-\x7e]+$/)
        if (value !== null) expect(value.isWellFormed()).toBe(true)
      }
    }),
  )
})
