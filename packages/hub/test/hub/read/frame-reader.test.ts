import { describe, expect, test } from 'vitest'
import { shareText } from '../../../src/hub/live/sink.ts'
import { createFrameReader } from '../../../src/hub/read/frame-reader.ts'

describe('readers of shared bytes', () => {
  const shared = shareText(
    ': comment\n\nretry: 500\nevent: a\ndata: 1\n\nid: X2\ncontent: text\ndata: 2\n\ndata: 3\n\n',
  )

  test('each get all frames, with the id that each had before', () => {
    const [one, other] = [createFrameReader(), createFrameReader()]
    one(shareText('id: X1\ndata: 0\n\n'))
    const rest = [
      { id: 'X2', type: 'message', data: '2', content: 'text' },
      { id: 'X2', type: 'message', data: '3' },
    ]
    expect(one(shared)).toEqual([{ id: 'X1', type: 'a', data: '1' }, ...rest])
    expect(other(shared)).toEqual([{ id: null, type: 'a', data: '1' }, ...rest])
    expect(other(shareText('data: 4\n\n'))).toEqual([{ id: 'X2', type: 'message', data: '4' }])
  })

  test('are each told the time to stay away', () => {
    const told: number[] = []
    for (let readers = 0; readers < 3; readers += 1) createFrameReader((ms) => told.push(ms))(shared)
    expect(told).toEqual([500, 500, 500])
  })

  test('cannot change a frame for each other', () => {
    const [frame] = [...createFrameReader()(shared)]
    expect(() => Object.assign(frame as { data: string }, { data: 'x' })).toThrow(TypeError)
    expect(createFrameReader()(shared)[0]?.data).toBe('1')
  })
})
