import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createResponse, type ResponseHead } from '../src/response.ts'

const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n'
const chunked = `${head}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n \r\n6\r\nworld\n\r\n0\r\n\r\n`

test('a chunked answer is read, however its bytes are cut', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: chunked.length })), (cuts) => {
      const at = [0, ...cuts.sort((one, other) => one - other), chunked.length]
      const { body, isWhole } = read(at.map((from, index) => chunked.slice(from, at[index + 1])))
      expect([body, isWhole]).toEqual(['hello world\n', true])
    }),
  )
})

test('an answer of HTTP/1.0 goes on until the connection ends, and one with a length until then', () => {
  expect(read([`${head.replace('1.1', '1.0')}\r\n`, 'a', 'b'])).toMatchObject({ body: 'ab', isWhole: false })
  expect(read([`${head}Content-Length: 2\r\n\r\nabc`])).toMatchObject({ body: 'ab', isWhole: true })
})

test('status and headers are told before the body', () => {
  const { heads } = read(['HTTP/1.1 503 No\r\nRETRY-AFTER:  7\r\nContent-Length: 0\r\n\r\n'])
  expect(heads.map(({ status, headers }) => [status, headers.get('retry-after')])).toEqual([[503, '7']])
})

test.each(['SSH-2.0-OpenSSH\r\n\r\n', `${head}Transfer-Encoding: chunked\r\n\r\nx\r\n`, 'a'.repeat(70_000)])(
  'an answer that is no HTTP is an error: %.12s',
  (text) => expect(() => read([text])).toThrow(),
)

function read(pieces: readonly string[]) {
  const heads: ResponseHead[] = []
  let body = ''
  const response = createResponse({
    onHead: (each) => heads.push(each),
    onBody: (text) => {
      body += text
    },
  })
  for (const piece of pieces) response.feed(piece)
  return { heads, body, isWhole: response.isWhole }
}
