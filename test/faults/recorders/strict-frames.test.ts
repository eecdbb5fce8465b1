import { createRandom } from '@rejoin/hub/testing'
import { describe, expect, test } from 'vitest'
import { createStrictFrames, type StrictFrame } from './strict-frames.ts'

const stream = [
  'retry: 2000\nid: 01A\nevent: hello\ndata: {"resumed":false}\n\n',
  ': hb\n\n',
  'id: 01B\ndata: one line\n\n',
  'retry: 4000\n: hb\n\n',
  'id: 01C\nevent: größe\ndata: two\ndata: \ndata: lines\n\n',
  'id: 01D\nevent: said\ncontent: text\ndata: hello\n\n',
].join('')

describe('frames that a hub may write (§4.3)', () => {
  test('are told at their blank line, however the bytes are cut', () => {
    const bytes = Buffer.from(stream)
    const random = createRandom(1)
    for (let round = 0; round < 200; round += 1) {
      const { frames, complaints, feed } = reader()
      for (let at = 0; at < bytes.length; ) {
        const end = at + 1 + Math.floor(random() * 20)
        feed(bytes.subarray(at, end))
        at = end
      }
      expect(complaints).toEqual([])
      expect(frames.map(({ id, type, data }) => [id, type, data])).toEqual([
        ['01A', 'hello', '{"resumed":false}'],
        [undefined, undefined, ''],
        ['01B', 'message', 'one line'],
        [undefined, undefined, ''],
        ['01C', 'größe', 'two\n\nlines'],
        ['01D', 'said', 'hello'],
      ])
      expect(frames.map(({ retryMs }) => retryMs)).toEqual([2000, undefined, undefined, 4000, undefined, undefined])
    }
  })

  test('leave what was cut off, with its id as far as it came', () => {
    const { frames, feed, partial } = reader()
    expect(partial()).toBeUndefined()
    feed(Buffer.from('id: 01A\ndata: x\n\nid: 01'))
    expect(partial()).toEqual({ id: '01' })
    feed(Buffer.from('B\ndata: y\n'))
    expect(partial()).toEqual({ id: '01B' })
    expect(frames).toHaveLength(1)
    feed(Buffer.from('\n: h'))
    expect(partial()).toEqual({ id: null })
    expect(frames).toHaveLength(2)
  })
})

describe('bytes that no hub may write are reported', () => {
  test.each([
    ['a carriage return', 'id: 1\r\ndata: x\r\n\n'],
    ['a NUL', 'id: 1\ndata: \0\n\n'],
    ['a field without its space', 'id:1\ndata: x\n\n'],
    ['an unknown field', 'id: 1\nname: x\ndata: x\n\n'],
    ['a content that is not text', 'id: 1\ncontent: json\ndata: x\n\n'],
    ['a content behind the data', 'id: 1\ndata: x\ncontent: text\n\n'],
    ['a frame of the protocol as text', 'event: hello\ncontent: text\ndata: {}\n\n'],
    ['an id behind the data', 'data: x\nid: 1\n\n'],
    ['two ids', 'id: 1\nid: 2\ndata: x\n\n'],
    ['an id without data', 'id: 1\n\n'],
    ['an event without an id', 'data: x\n\n'],
    ['an id that could not be sent back', 'id: a b\ndata: x\n\n'],
    ['a retry that is no number', 'retry: soon\nid: 1\ndata: x\n\n'],
    ['a comment inside a frame', 'id: 1\n: hb\ndata: x\n\n'],
    ['an empty line too many', 'id: 1\ndata: x\n\n\n\n'],
  ])('%s', (_what, text) => {
    const { complaints, feed } = reader()
    feed(Buffer.from(text))
    expect(complaints).toHaveLength(1)
  })

  test('bytes that are not UTF-8', () => {
    const { complaints, feed } = reader()
    feed(Buffer.concat([Buffer.from('id: 1\ndata: '), Buffer.from([0xc3, 0x28]), Buffer.from('\n\n')]))
    expect(complaints).toEqual(['bytes that are not UTF-8'])
  })
})

function reader() {
  const frames: StrictFrame[] = []
  const complaints: string[] = []
  const parser = createStrictFrames({
    onFrame: (frame) => frames.push(frame),
    onMalformed: (why) => complaints.push(why),
  })
  return { frames, complaints, ...parser }
}
