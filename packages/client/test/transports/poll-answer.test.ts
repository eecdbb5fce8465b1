import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createAnswerReader } from '../../src/transports/poll-answer.ts'

const answers = fc.record({
  events: fc.array(fc.record({ id: fc.option(fc.string()), type: fc.string(), data: fc.json() }), { maxLength: 5 }),
  cursor: fc.option(fc.string()),
  retryMs: fc.nat(),
})

test('an answer is read as JSON.parse reads it, wherever it is cut and however it is written (§4.14)', () => {
  fc.assert(
    fc.property(answers, fc.boolean(), fc.nat(2), fc.array(fc.nat(40)), (answer, isFirst, indent, lengths) => {
      const { events, ...others } = answer
      const text = JSON.stringify(isFirst ? answer : { ...others, events }, null, indent)
      const reader = createAnswerReader()
      const frames = piecesOf(text, lengths).flatMap((piece) => reader.read(piece))
      if (isFirst) expect(frames).toEqual(events)
      const { events: rest, ...end } = reader.finish()
      expect([...frames, ...rest]).toEqual(events)
      expect(end).toEqual(others)
    }),
  )
})

test('events that were whole when an answer was cut are read, and the rest is not', () => {
  const reader = createAnswerReader()
  expect(reader.read('{"events":[{"id":"1","type":"a","data":"[\\"{\\"]"},{"id":"2"')).toEqual([
    { id: '1', type: 'a', data: '["{"]' },
  ])
  expect(() => reader.finish()).toThrow(SyntaxError)
})

test('text in the shape of frames elsewhere in the answer is not read as events', () => {
  const reader = createAnswerReader()
  expect(reader.read('{"others":[{"id":"1"}],"events":[')).toEqual([])
})

function piecesOf(text: string, lengths: number[]): string[] {
  const pieces: string[] = []
  let at = 0
  for (const length of lengths) {
    pieces.push(text.slice(at, at + length))
    at += length
  }
  return [...pieces, text.slice(at)]
}
