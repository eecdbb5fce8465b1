import { expect, test } from 'vitest'
import { jsonMistake } from '../src/json-mistake.ts'

test.each([
  ['{"a":1,}', 'expected double-quoted property name at position 7'],
  ['{"pin":1234 "b":2}', "expected ',' or '}' after property value at position 12"],
  ['{"secret":hello}', "unexpected token 'h'"],
  [`{"secret": ${'x'.repeat(100)}`, "unexpected token 'x'"],
  ['{"a":', 'unexpected end of JSON input'],
])('a mistake in JSON is described without quoting the text: %s', (text, expected) => {
  const error = errorOf(text)
  expect(jsonMistake(error)).toMatch(new RegExp(`^${expected.replaceAll(/[{}]/g, '\\$&')}`))
  expect(jsonMistake(error)).not.toMatch(/secret|hello|1234/)
})

function errorOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    return error
  }
}
