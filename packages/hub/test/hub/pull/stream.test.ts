import { createHub, type Hub, type StreamFrame, type StreamOptions } from '@rejoin/hub'
import { createSubscription } from '@rejoin/hub/internal'
import { memoryLog } from '@rejoin/hub/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { publish } from '../../support/publishing.ts'
import { openHub } from '../../support/recorder.ts'

async function startHub(): Promise<Hub> {
  const hub = await createHub({ log: memoryLog() })
  onTestFinished(() => hub.close())
  return hub
}

/** The frames of a stream, one by one. */
function read(hub: Hub, cursor?: string, options?: StreamOptions): AsyncIterator<StreamFrame> {
  return hub.stream('a', { from: cursor ?? null, ...options })[Symbol.asyncIterator]()
}

async function take(frames: AsyncIterator<StreamFrame>, count: number): Promise<StreamFrame[]> {
  const taken: StreamFrame[] = []
  while (taken.length < count) {
    const { done, value } = await frames.next()
    if (done) break
    taken.push(value)
  }
  return taken
}

const data = (frames: StreamFrame[]) => frames.filter(({ type }) => type === 'message').map((frame) => frame.data)

describe('a stream inside the program', () => {
  test('that is left by throw() is a reader that has gone, and the error goes on', async () => {
    const hub = await startHub()
    const frames = read(hub)
    await take(frames, 1)
    const failure = new Error('the program failed')
    await expect(frames.throw?.(failure)).rejects.toBe(failure)
    expect([[...hub.admin.connections()], await frames.next()]).toEqual([[], { done: true, value: undefined }])
  })

  test('may share its signal with any number of others, without a warning of a leak, and all of them end by it', async () => {
    const hub = await startHub()
    const warnings: Error[] = []
    const onWarning = (warning: Error) => void warnings.push(warning)
    process.on('warning', onWarning)
    onTestFinished(() => void process.off('warning', onWarning))
    const abort = new AbortController()
    const streams = Array.from({ length: 50 }, () => read(hub, undefined, { signal: abort.signal }))
    const polls = Array.from({ length: 50 }, () =>
      hub.port.poll(
        { subscription: createSubscription(['a']), start: { from: 'cursor', cursor: 'x' } },
        { signal: abort.signal },
      ),
    )
    for (const frames of streams) await take(frames, 1)
    await Promise.all(polls)
    const ends = streams.map((frames) => frames.next())
    abort.abort()
    for (const end of ends) expect(await end).toMatchObject({ done: true })
    // Warnings are told in a later turn.
    await new Promise(setImmediate)
    expect(warnings).toEqual([])
  })

  test('greets, goes on from a cursor, and gives what is published then', async () => {
    const hub = await startHub()
    const [first] = await publish(hub, 'a', 1, 2)
    const frames = read(hub, first)
    const replayed = await take(frames, 2)
    expect(replayed[0]).toMatchObject({ type: 'hello', id: first, data: expect.stringContaining('"resumed":true') })
    await publish(hub, 'a', 3)
    expect(data([...replayed, ...(await take(frames, 1))])).toEqual(['2', '3'])
  })

  test('waits for the loop: a slow one is served from the log, and misses nothing', async () => {
    const hub = await startHub()
    const frames = read(hub, undefined, { sinkBudgetBytes: 500 })
    const taken = await take(frames, 1)
    const numbers = Array.from({ length: 300 }, (_, n) => n)
    for (const n of numbers) {
      await publish(hub, 'a', n)
      if (n % 10 === 0) taken.push(...(await take(frames, 1)))
    }
    taken.push(...(await take(frames, 301 - taken.length)))
    expect(data(taken)).toEqual(numbers.map(String))
  })

  test('connects when the loop starts, and leaves when the loop is left', async () => {
    const hub = await startHub()
    const seen: string[] = []
    hub.on('connect', () => void seen.push('connect'))
    hub.on('close', ({ reason }) => void seen.push(reason))
    const stream = hub.stream(['a'])
    expect(seen).toEqual([])
    for await (const { type } of stream) {
      expect([type, ...seen]).toEqual(['hello', 'connect'])
      break
    }
    expect(seen).toEqual(['connect', 'disconnected'])
  })

  test('ends without an error when its signal is aborted, also while it waits', async () => {
    const hub = await startHub()
    const closed: string[] = []
    hub.on('close', ({ reason }) => void closed.push(reason))
    const abort = new AbortController()
    const frames = read(hub, undefined, { signal: abort.signal })
    await take(frames, 1)
    const waiting = frames.next()
    abort.abort()
    expect(await waiting).toEqual({ done: true, value: undefined })
    expect(closed).toEqual(['disconnected'])
    expect(await read(hub, undefined, { signal: abort.signal }).next()).toEqual({ done: true, value: undefined })
  })

  test('that is left while it waits does not wait for one more event', async () => {
    const hub = await startHub()
    const frames = read(hub)
    await take(frames, 1)
    const waiting = frames.next()
    await frames.return?.()
    expect(await waiting).toEqual({ done: true, value: undefined })
  })

  test('ends after the frame that says why', async () => {
    const hub = await startHub()
    const closed: string[] = []
    hub.on('close', ({ reason }) => void closed.push(reason))
    const frames = read(hub)
    await take(frames, 1)
    const waiting = take(frames, 9)
    await hub.close()
    expect(await waiting).toMatchObject([{ type: 'close', data: '{"reason":"drain"}' }])
    expect(closed).toEqual(['drain'])
  })

  test('is told of a gap like any other reader', async () => {
    const hub = await startHub()
    const [hello, sync] = await take(read(hub, 'nonsense'), 2)
    expect([hello, sync]).toMatchObject([
      { type: 'hello', id: null },
      { type: 'sync-required', id: expect.any(String) },
    ])
  })

  test('that nobody reads is given up, and a later read fails with an error', async () => {
    const { hub, environment } = await openHub({ stallTimeoutMs: 1000 })
    const stalls: number[] = []
    hub.on('stall', ({ pending }) => void stalls.push(pending))
    const frames = read(hub, undefined, { sinkBudgetBytes: 100 })
    await take(frames, 1)
    for (let n = 0; n < 20; n += 1) {
      await publish(hub, 'a', n)
      await environment.settle()
    }
    await environment.advance(3000)
    expect(stalls).toEqual([expect.any(Number)])
    expect(stalls[0]).toBeLessThan(400)
    await expect(frames.next()).rejects.toMatchObject({ name: 'RejoinError', code: 'closed', retryable: true })
  })
})
