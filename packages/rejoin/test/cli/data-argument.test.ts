import { expect, test } from 'vitest'
import { parseDataArgument } from '../../src/cli/commands/data-argument.ts'

test.each([
  ['one', { text: 'one' }],
  ['', { text: '' }],
  ['{"a":1', { text: '{"a":1' }],
  ['{"a": [1, -2.5e3, "9007199254740993"]}', { data: { a: [1, -2500, '9007199254740993'] } }],
  ['"a \\" 12345678901234567890"', { data: 'a " 12345678901234567890' }],
  ['null', { data: null }],
  ['9007199254740993', { text: '9007199254740993' }],
  ['{"sum":1e400}', { text: '{"sum":1e400}' }],
])('%s on a command line is JSON where it is JSON, and no number becomes another', (argument, data) => {
  expect(parseDataArgument(argument)).toEqual(data)
})
