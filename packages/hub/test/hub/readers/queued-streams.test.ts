import { describe, expect, test } from 'vitest'
import { openHub, type Recorder } from '../../support/recorder.ts'

const events = 50
const text = 'x'.repeat(300)
// What one reader is written in one step before it is found to be full: here, everything.
const oneStep = events * 500
const maxStreamBytes = 4 * oneStep

describe('streams that nobody reads', () => {
  test('hold no more memory together than the hub allows, however many they are', async () => {
    const { environment, connectMany, pending } = await openFull()
    const readers = connectMany(40)
    for (let looks = 0; looks < 40; looks += 1) {
      await environment.advance(100)
      expect(pending(readers)).toBeLessThan(maxStreamBytes + oneStep)
    }
  })

  test('are closed as overloaded when others need the room, and miss nothing when they come back', async () => {
    const { hub, environment, connect, connectMany } = await openFull()
    const reasons: string[] = []
    hub.on('close', ({ reason }) => void reasons.push(reason))
    const readers = connectMany(20)
    await environment.advance(1500)
    const closed = readers.filter(({ destroyed }) => destroyed)
    expect(closed.length).toBeGreaterThan(0)
    expect(new Set(reasons)).toEqual(new Set(['overloaded']))
    await environment.advance(60_000)
    // What it has taken is what it had when it was cut; whatever it had not taken comes again.
    const back = connect('a', { cursor: closed[0]?.events[0]?.id ?? '' })
    for (let turns = 0; turns < 20; turns += 1) {
      await environment.advance(100)
      back.drain()
    }
    expect(back.data).toEqual(expected)
  })

  test('do not cost a reader that takes its bytes: of those in wait, the slowest are closed', async () => {
    const { environment, connectMany } = await openFull()
    const honest = connectMany(3)
    const dead = connectMany(20)
    for (let looks = 0; looks < 40; looks += 1) {
      await environment.advance(50)
      for (const reader of honest) reader.drain()
    }
    expect(honest.map(({ destroyed }) => destroyed)).toEqual([false, false, false])
    expect(honest.map(({ data }) => data)).toEqual([expected, expected, expected])
    expect(dead.filter(({ destroyed }) => destroyed).length).toBeGreaterThan(0)
  })

  test('keep a new reader waiting for a few seconds at most', async () => {
    const { environment, connectMany } = await openFull()
    connectMany(20)
    await environment.advance(10)
    const [late] = connectMany(1) as [Recorder]
    await environment.advance(8000)
    expect(late.data).toEqual(expected)
  })

  test('cost nothing where there is room for all of them', async () => {
    const { environment, connectMany } = await openFull(40 * oneStep)
    const readers = connectMany(20)
    await environment.advance(30_000)
    expect(readers.map(({ destroyed }) => destroyed)).toEqual(Array(20).fill(false))
  })

  test('share the bytes of a large event, however many of them replay it', async () => {
    const { hub, environment, connect } = await openHub()
    for (const letter of ['a', 'b']) await hub.publish('a', { data: letter.repeat(100_000) })
    await environment.settle()
    const earliest = { start: { from: 'earliest' as const } }
    const readers = Array.from({ length: 3 }, () => connect('a', earliest))
    await environment.settle()
    const large = readers.map(({ buffers }) => buffers.filter(({ length }) => length > 100_000))
    expect(large.map(({ length }) => length)).toEqual([2, 2, 2])
    expect(new Set(large.flat()).size).toBe(2)
    expect(readers[0]?.data.map((data) => data[1])).toEqual(['a', 'b'])
  })

  test('leave readers alone that are pushed the same bytes live', async () => {
    const { hub, environment, connect } = await openHub({ limits: { maxStreamBytes: 20_000 } })
    const readers = Array.from({ length: 20 }, () => connect('a', { fullAfter: 1_000_000 }))
    await environment.settle()
    for (let n = 0; n < events; n += 1) await hub.publish('a', { data: { n, text } })
    await environment.advance(30_000)
    expect(readers.map(({ destroyed }) => destroyed)).toEqual(Array(20).fill(false))
    expect(readers.map(({ data }) => data.length)).toEqual(Array(20).fill(events))
  })
})

const expected = Array.from({ length: events }, (_, n) => JSON.stringify({ n, text }))

/** A hub whose channel holds some events, and readers that want all of them and take none until they are told to. */
async function openFull(maxBytes = maxStreamBytes) {
  const opened = await openHub({ limits: { maxStreamBytes: maxBytes } })
  const { hub, environment, connect } = opened
  for (let n = 0; n < events; n += 1) await hub.publish('a', { data: { n, text } })
  await environment.settle()
  return {
    ...opened,
    connectMany: (count: number) =>
      Array.from({ length: count }, () => connect('a', { start: { from: 'earliest' }, fullAfter: 1000 })),
    pending: (readers: readonly Recorder[]) =>
      readers.reduce((sum, { destroyed, pending }) => sum + (destroyed ? 0 : pending), 0),
  }
}
