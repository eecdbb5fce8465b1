import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkChannel, checkType, isReservedType, reservedTypes } from '../src/names.ts'

const utf8Length = (text: string) => new TextEncoder().encode(text).length

/** What neither name may be; the channel and the type have limits of their own. */
const neither: [unknown, string][] = [
  ['', 'is empty'],
  ['a\nb', 'control character'],
  ['a\rb', 'control character'],
  ['a\0b', 'control character'],
  ['a\tb', 'control character'],
  ['a\u007fb', 'control character'],
  ['a\u0085b', 'control character'],
  ['a\ud83d', 'not valid Unicode'],
  ['\udc00a', 'not valid Unicode'],
  [undefined, 'has to be a string'],
  [null, 'has to be a string'],
  [42, 'has to be a string'],
  [['orders'], 'has to be a string'],
]

describe('a channel name (§5.2)', () => {
  test.each([
    'orders',
    'orders/42',
    'a/b/c',
    '...',
    '.a/b.',
    'a b',
    ' ',
    'ünïcödé/😀',
    'a:b?c#d%2F',
    'hello',
    'a'.repeat(256),
    'é'.repeat(128),
    '€'.repeat(85),
    '😀'.repeat(64),
  ])('can be %j', (name) => {
    expect(checkChannel(name)).toBe(name)
  })

  test.each<[unknown, string]>([
    ...neither,
    ['/', 'empty segment'],
    ['/orders', 'empty segment'],
    ['orders/', 'empty segment'],
    ['a//b', 'empty segment'],
    ['.', 'segment .'],
    ['a/./b', 'segment .'],
    ['..', 'segment ..'],
    ['a/..', 'segment ..'],
    ['orders/*', 'only patterns'],
    ['a'.repeat(257), 'over 256 bytes'],
    ['é'.repeat(129), 'over 256 bytes'],
    ['€'.repeat(86), 'over 256 bytes'],
    ['😀'.repeat(65), 'over 256 bytes'],
  ])('cannot be %j, and the rejection says that it %s', (name, problem) => {
    expect(() => checkChannel(name)).toThrow(expect.objectContaining({ code: 'invalid-channel', retryable: false }))
    expect(() => checkChannel(name)).toThrow(problem)
    expect(() => checkChannel(name)).toThrow('Name it like orders/42.')
  })

  test('is rejected or returned as it is, by the letter of the rule, whatever it is', () => {
    const parts = fc.constantFrom(
      'a',
      'é',
      '€',
      '😀',
      '/',
      '.',
      '*',
      '\n',
      '\u009f',
      '\ud83d',
      'x'.repeat(60),
      '€'.repeat(20),
    )
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: parts }), fc.string({ unit: 'binary' })), (name) => {
        const segments = name.split('/')
        const right =
          utf8Length(name) <= 256 &&
          name.isWellFormed() &&
          !/[\p{Cc}*]/u.test(name) &&
          !segments.some((segment) => ['', '.', '..'].includes(segment))
        if (right) expect(checkChannel(name)).toBe(name)
        else expect(() => checkChannel(name)).toThrow(expect.objectContaining({ code: 'invalid-channel' }))
      }),
      { seed: 52, numRuns: 2000 },
    )
  })
})

describe('an event type (§5.3)', () => {
  test.each([
    'message',
    'order shipped',
    ' a',
    'a:b',
    'a/../b',
    '*',
    'ünïcödé',
    'x'.repeat(128),
    '€'.repeat(42),
    '😀'.repeat(32),
  ])('can be %j', (type) => {
    expect(checkType(type)).toBe(type)
  })

  test.each<[unknown, string]>([
    ...neither,
    ['x'.repeat(129), 'over 128 bytes'],
    ['€'.repeat(43), 'over 128 bytes'],
    ['😀'.repeat(33), 'over 128 bytes'],
  ])('cannot be %j, and the rejection says that it %s', (type, problem) => {
    expect(() => checkType(type)).toThrow(expect.objectContaining({ code: 'invalid-type', retryable: false }))
    expect(() => checkType(type)).toThrow(problem)
    expect(() => checkType(type)).toThrow('Name it like order-shipped.')
  })

  test('is rejected or returned as it is, by the letter of the rule, whatever it is', () => {
    const parts = fc.constantFrom('a', 'é', '€', '😀', ' ', '\r', '\u0080', '\udc00', 'x'.repeat(30), '€'.repeat(10))
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: parts }), fc.string({ unit: 'binary' })), (type) => {
        const right = type !== '' && utf8Length(type) <= 128 && type.isWellFormed() && !/\p{Cc}/u.test(type)
        if (right) expect(checkType(type)).toBe(type)
        else expect(() => checkType(type)).toThrow(expect.objectContaining({ code: 'invalid-type' }))
      }),
      { seed: 53, numRuns: 2000 },
    )
  })
})

test('a rejection of a hostile name is one short line', () => {
  for (const name of ['\n'.repeat(10_000), '\ud83d'.repeat(10_000), `${'x'.repeat(59)}😀${'x'.repeat(10_000)}`]) {
    const error = rejectionOf(() => checkChannel(name))
    expect(error.message.length).toBeLessThan(500)
    expect(error.message).not.toMatch(/[\r\n]/)
    expect(error.message.isWellFormed()).toBe(true)
  }
})

test('the reserved types are those of the protocol and of the browser (§4.8)', () => {
  expect([...reservedTypes].sort()).toEqual([
    'checkpoint',
    'close',
    'error',
    'heartbeat',
    'hello',
    'open',
    'sync-required',
  ])
  expect(reservedTypes.every(isReservedType)).toBe(true)
  expect(['message', 'Hello', 'hello ', 'closed', ''].some(isReservedType)).toBe(false)
})

function rejectionOf(call: () => unknown): Error {
  try {
    call()
  } catch (error) {
    return error as Error
  }
  throw new Error('nothing was rejected')
}
