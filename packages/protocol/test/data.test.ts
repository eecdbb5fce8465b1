import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { normaliseData } from '../src/data.ts'

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
