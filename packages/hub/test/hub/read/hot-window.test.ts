import { memoryLog } from '@rejoin/hub/memory'
import { createVirtualEnvironment } from '@rejoin/hub/testing'
import { comparePositions, isAfter, type Position } from '@rejoin/protocol'
import { describe, expect, test, vi } from 'vitest'
import { encodeFrame, encodeFrames, framesOf } from '../../../src/hub/live/frame.ts'
import { createBlocks } from '../../../src/hub/read/blocks.ts'
import { createHotWindow } from '../../../src/hub/read/hot-window.ts'
import type { Log, LogEvent } from '../../../src/log/contract.ts'
import { mergeInOrder } from '../../../src/log/in-order.ts'
import { createSliceQueue } from '../../../src/slice-queue.ts'

const at = (ms: number, seq = 0): Position => ({ ms, seq })
const event = (position: Position, previous: Position, channel = 'a', data = 'x'): LogEvent => ({
  ...{ kind: 'event', channel, type: 'message', data, position, previous, at: 0 },
})
const frame = (position: Position, channel = 'a', data = 'x') =>
  encodeFrame(event(position, at(0), channel, data), `${position.ms}`)

const encode = (events: readonly LogEvent[]) => encodeFrames(events, () => 'id')

describe('blocks of the log', () => {
  async function openLog(count: number, maxBytes = 10_000_000) {
    const environment = createVirtualEnvironment()
    const inner = await memoryLog({ window: { maxEvents: 100_000 } }).open(environment)
    const places: Position[] = []
    for (let n = 0; n < count; n += 1) {
      const entry = { channel: 'a', type: 'message', data: `${n}` }
      places.push((await inner.append([entry], { token: `${n}` })).stamps[0]?.position as Position)
      if (n % 10 === 9) environment.stepClock(1)
    }
    let reads = 0
    let atOnce = 0
    let most = 0
    const log: Pick<Log, 'read'> = {
      async read(...question) {
        reads += 1
        atOnce += 1
        most = Math.max(most, atOnce)
        await new Promise((resolve) => setImmediate(resolve))
        atOnce -= 1
        return inner.read(...question)
      },
    }
    const blocks = createBlocks({ log: log as Log, maxBytes, slices: createSliceQueue(environment), encode })
    const head = await inner.head()
    return { inner, blocks, head, places, reads: () => reads, most: () => most }
  }

  test('a thousand readers that come back to one channel, each with its own cursor, cost a handful of reads', async () => {
    const { blocks, head, places, reads } = await openLog(1000)
    const answers = await Promise.all(places.slice(0, -1).map((place) => blocks.read('a', place, head)))
    for (const [index, block] of answers.entries()) {
      const leadsOn = 'frames' in block && !isAfter(block.after, places[index] as Position)
      expect(leadsOn && isAfter(block.through, places[index] as Position)).toBe(true)
    }
    expect(reads()).toBeLessThanOrEqual(3)
  })

  test('a replay that is longer than what may be kept reads every part of the log once', async () => {
    // 10,000 events within one round place are ten blocks, of which not even one may stay.
    const { blocks, head, reads } = await openLog(10_000, 1)
    let cursor = at(0)
    while (isAfter(head, cursor)) {
      const block = await blocks.read('a', cursor, head)
      cursor = 'through' in block ? block.through : block.wholeAfter
    }
    expect(reads()).toBeLessThanOrEqual(12)
  })

  test('readers of many channels make the log answer only a few reads at once', async () => {
    const { blocks, head, most } = await openLog(10)
    await Promise.all(Array.from({ length: 50 }, (_, n) => blocks.read(`c${n}`, at(1), head)))
    expect(most()).toBeLessThanOrEqual(4)
  })

  test('an event whose predecessor was removed from the log is a gap, and is not skipped in silence', async () => {
    const lost = [event(at(5), at(4)), event(at(9), at(8))]
    const log = {
      read: async (_channels: unknown, after: Position) => ({
        events: lost.filter((one) => isAfter(one.position, after)),
        completeThrough: at(9),
      }),
    }
    const blocks = createBlocks({
      log: log as unknown as Log,
      maxBytes: 1000,
      slices: createSliceQueue(createVirtualEnvironment()),
      encode,
    })
    expect(await blocks.read('a', at(5), at(9))).toMatchObject({ channels: ['a'], reason: 'expired' })
    expect(await blocks.read('a', at(8), at(9))).toMatchObject({ through: at(9) })
  })

  test('events that were read before an invalidation are not served after it', async () => {
    const { inner, blocks, places, reads } = await openLog(10)
    const before = blocks.read('a', places[0] as Position, places[9] as Position)
    await inner.invalidate('a')
    blocks.invalidate('a')
    await before
    const head = await inner.head()
    expect(await blocks.read('a', places[0] as Position, head)).toMatchObject({ reason: 'forced' })
    expect(reads()).toBeGreaterThan(1)
  })

  test('are let go when they cost more than allowed', async () => {
    const { inner, head, places } = await openLog(3000)
    let reads = 0
    const log = {
      read(...question: Parameters<Log['read']>) {
        reads += 1
        return inner.read(...question)
      },
    }
    const blocks = createBlocks({
      log: log as unknown as Log,
      maxBytes: 1,
      slices: createSliceQueue(createVirtualEnvironment()),
      encode,
    })
    await blocks.read('a', places[0] as Position, head)
    await blocks.read('a', places[0] as Position, head)
    expect(reads).toBe(2)
  })
})

describe('the memory of a small event', () => {
  const events = Array.from({ length: 1000 }, (_, n) => event(at(n + 1), at(n), 'a', `number ${n}`))
  const idOf = ({ ms }: Position) => `${ms}`

  test.each([
    ['with readers', (one: LogEvent) => framesOf([one], () => true, idOf)],
    ['without readers', (one: LogEvent) => framesOf([one], () => false, idOf)],
    ['read from the log', (one: LogEvent) => encodeFrames([one], idOf)],
  ])('is about its own size, %s, whatever else the process does in between', (_how, framesFor) => {
    const frames = events.flatMap((one) => {
      // As many small buffers as a piece of Node's pool has room for.
      for (let n = 0; n < 100; n += 1)
        Buffer.from(`the head of a request, a key of the log, or the like ${n}`.padEnd(100))
      // A frame that nobody waited for is encoded when it is asked for its bytes.
      return framesFor(one).map((frame) => ({ ...frame, bytes: frame.bytes }))
    })
    const held = new Set(frames.map(({ bytes }) => bytes.buffer))
    const bytes = [...held].reduce((sum, { byteLength }) => sum + byteLength, 0)
    expect(bytes).toBeLessThan(frames.length * 200)
    expect(frames.map((one) => Buffer.from(one.bytes).toString())).toEqual(
      events.map((one) => Buffer.from(encodeFrame(one, idOf(one.position)).bytes).toString()),
    )
  })
})

describe('the hot window', () => {
  test('covers what it holds, and nothing before that', () => {
    const hot = createHotWindow(at(0), 1400)
    for (let ms = 1; ms <= 5; ms += 1) hot.add(frame(at(ms)))
    expect(hot.covers(['a'], at(0))).toBe(false)
    expect(hot.covers(['a'], at(5))).toBe(true)
    expect(hot.slice(['a'], at(4), 1000).frames.map((one) => one.position.ms)).toEqual([5])
  })

  test('counts what a small event really costs', () => {
    const hot = createHotWindow(at(0), 100_000)
    for (let ms = 1; ms <= 1000; ms += 1) hot.add(frame(at(ms)))
    expect(hot.slice(['a'], at(0), 1e9).frames.length).toBeLessThan(250)
  })

  test('slices many channels without walking further than the slice', () => {
    const hot = createHotWindow(at(0), 1e9)
    const names = Array.from({ length: 100 }, (_, n) => `c${n}`)
    for (let ms = 1; ms <= 10_000; ms += 1) hot.add(frame(at(ms), names[ms % 100] as string, 'x'.repeat(100)))
    const { frames, cut } = hot.slice(names, at(0), 1000)
    expect([frames.length < 12, cut]).toEqual([true, true])
    expect(frames.map((one) => one.position.ms)).toEqual(frames.map((_, index) => index + 1))
  })
})

describe('events encoded together', () => {
  const events = ['plain', 'é', '', '🦊\nsecond line', 'plain again'].map((data, n) =>
    event(at(n + 1), at(n), n % 2 === 0 ? 'a' : 'b', data),
  )
  const text = ({ bytes }: { bytes: Uint8Array }) => Buffer.from(bytes).toString()
  const idOf = ({ ms }: Position) => `id-${ms}`
  const oneByOne = events.map((one) => text(encodeFrame(one, idOf(one.position))))

  test('in a block have the same bytes as one by one, whatever their characters', () => {
    expect(encodeFrames(events, idOf).map(text)).toEqual(oneByOne)
  })

  test.each([
    ['nobody', []],
    ['somebody', ['a']],
    ['everybody', ['a', 'b']],
  ])('are the same when %s listened as they came', (_, heard: string[]) => {
    const frames = framesOf(events, (channel) => heard.includes(channel), idOf)
    expect(frames.map(({ position, channel }) => [position, channel])).toEqual(
      events.map(({ position, channel }) => [position, channel]),
    )
    expect(frames.map(text)).toEqual(oneByOne)
    // Asked again, as by the next reader.
    expect(frames.map(text)).toEqual(oneByOne)
  })

  test('are not encoded before somebody asks for them', () => {
    const asked = vi.fn(idOf)
    const [first] = framesOf(events, () => false, asked)
    expect(asked).not.toHaveBeenCalled()
    expect(first?.bytes).toBe(first?.bytes)
    expect(asked).toHaveBeenCalledOnce()
  })

  test('count for their text and their encoding, however many lines that has', () => {
    const lines = event(at(1), at(0), 'a', '\n'.repeat(1000))
    const [frame] = framesOf([lines], () => false, idOf)
    expect(frame?.size).toBeGreaterThanOrEqual(1000 + 7 * 1000)
  })
})

test('lists in order merge into one in order, whatever their lengths', () => {
  const lists = [[1, 4, 9, 10], [], [2, 3], [5], [6, 7, 8, 11, 12]]
  const stretches = lists.map((list) => ({ items: list.map((ms) => ({ position: at(ms) })), from: 0, to: list.length }))
  const merged = [...mergeInOrder(stretches)].map((item) => item.position)
  expect(merged).toEqual([...merged].sort(comparePositions))
  expect(merged).toHaveLength(12)
})

describe('catching up', () => {
  test('takes a few milliseconds of a turn and leaves the rest to the next', async () => {
    const environment = createVirtualEnvironment()
    const queue = createSliceQueue(environment)
    let done = 0
    const work = () => {
      environment.stepClock(1)
      done += 1
    }
    for (let n = 0; n < 20; n += 1) queue.add(work)
    expect(done).toBe(5)
    await environment.settle()
    expect(done).toBe(20)
  })
})
