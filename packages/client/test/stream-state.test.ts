import { describe, expect, test } from 'vitest'
import type { StreamState } from '../src/index.ts'
import { message } from './scripted-server.ts'
import { clock, retried, server, start, stateOf } from './stage.ts'

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
})
