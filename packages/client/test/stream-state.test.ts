import { describe, expect, test, vi } from 'vitest'
import type { StreamState } from '../src/index.ts'
import { hello, message } from './support/scripted-server.ts'
import { clock, retried, server, start, stateOf, useStage } from './support/stage.ts'

useStage()

describe('the state', () => {
  test('is told at once and at every change', async () => {
    const { stream } = start()
    const told: StreamState[] = []
    stream.onState((state) => told.push(state))
    const first = await server.stream()
    await stateOf(stream, 'connected')
    first.cut()
    await retried(stream)
    stream.close()
    expect(told.map(({ state, attempt }) => [state, attempt])).toEqual([
      ['connecting', 0],
      ['connected', 0],
      ['backoff', 1],
      ['connecting', 1],
      ['closed', 1],
    ])
    expect(told[2]?.nextRetryAt).toBeGreaterThan(told[0]?.lastEventAt ?? 0)
  })

  test('is the same object until something changes', async () => {
    const { stream, events } = start()
    expect(stream.state).toBe(stream.state)
    const before = stream.state
    ;(await server.stream()).send(...message('e1'))
    await events.until(1)
    expect(before).toMatchObject({ cursor: null, lastEventAt: null })
    expect(stream.state).toMatchObject({ cursor: 'e1', lastEventAt: clock.now() })
  })

  test('is told once to a handler that takes itself off in its first call', async () => {
    const error = vi.spyOn(console, 'error').mockReturnValue()
    const { stream } = start()
    const told: string[] = []
    const off = stream.onState(({ state }) => {
      off()
      told.push(state)
    })
    stream.onState(() => told.push('never'))()
    await server.stream()
    await stateOf(stream, 'connected')
    expect(told).toEqual(['connecting'])
    expect(error).not.toHaveBeenCalled()
  })

  test('is told once when it changes in the turn in which the handler was added', async () => {
    const { stream } = start()
    const told: string[] = []
    stream.onState(({ state }) => told.push(state))
    stream.close()
    await new Promise((resolve) => setImmediate(resolve))
    expect(told).toEqual(['closed'])
  })

  test('is told to everyone in the same order, also when a handler changes it', async () => {
    const { stream } = start()
    stream.onState(({ state }) => {
      if (state === 'connected') stream.close()
    })
    const second: string[] = []
    stream.onState(({ state }) => second.push(state))
    await server.stream()
    await stateOf(stream, 'closed')
    expect(second).toEqual(['connecting', 'closed'])
  })

  test('of a stream that the server ends is stale', async () => {
    const { stream } = start()
    const first = await server.stream()
    first.send(...hello())
    await stateOf(stream, 'connected')
    first.send('event: close', 'data: {"reason":"finished"}')
    expect(await stateOf(stream, 'closed')).toMatchObject({ closeReason: 'finished', stale: true })
  })

  test('of a stream that is closed before it connected is stale', () => {
    const { stream } = start()
    stream.close()
    expect(stream.state).toMatchObject({ state: 'closed', stale: true })
  })

  test('of a stream that its owner closes while it is live is stale', async () => {
    const { stream } = start()
    ;(await server.stream()).send(...hello())
    await stateOf(stream, 'connected')
    stream.close()
    expect(stream.state).toMatchObject({ state: 'closed', stale: true })
  })

  test('tells a stream that was never reached from one that is cut', async () => {
    const { stream } = start()
    ;(await server.visit()).cut()
    expect(await stateOf(stream, 'backoff')).toMatchObject({ opened: false })
    await retried(stream)
    const second = await server.stream()
    second.send(...hello())
    await expect.poll(() => stream.state.opened).toBe(true)
    second.cut()
    expect(await stateOf(stream, 'backoff')).toMatchObject({ opened: true })
  })
})
