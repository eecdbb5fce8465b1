import { describe, expect, test } from 'vitest'
import { machine } from '../support/machine.ts'

const hourMs = 3_600_000

describe('a server that is no hub, and quiet,', () => {
  test.each([
    ['says nothing at all', false],
    ['starts with a comment', true],
  ])('that %s is found out once: it has no polls, and then its stream is kept, and is up to date', (_, comments) => {
    const { connected, tell, elapse, is, opens } = machine({ tiers: 2 })
    connected()
    elapse(1)
    if (comments) tell({ type: 'bytes' })
    elapse(30_000)
    elapse(1000)
    expect(is()).toMatchObject({ tier: 1, state: 'connecting' })
    // A stream, where a hub would answer a poll.
    tell({ type: 'answered', status: 200, isStream: false, retryAfterMs: 0, isElsewhere: true })
    elapse(3000)
    expect(is()).toMatchObject({ tier: 0, state: 'connecting' })
    connected()
    const opened = opens.length
    for (let hour = 0; hour < 24; hour++) elapse(hourMs)
    expect(is()).toMatchObject({ state: 'connected', stale: false })
    expect(opens).toHaveLength(opened)
  })

  test('is up to date as soon as it answers again after a cut', () => {
    const { connected, tell, elapse, is } = machine({ tiers: 2 })
    connected()
    tell({ type: 'event', id: null })
    elapse(10_000)
    tell({ type: 'ended' })
    expect(is().stale).toBe(true)
    elapse(3000)
    connected()
    expect(is()).toMatchObject({ state: 'connected', stale: false })
  })

  test('keeps its stream after an event, on this connection and on the next', () => {
    const { connected, tell, elapse, is, opens } = machine({ tiers: 2 })
    connected()
    tell({ type: 'event', id: null })
    elapse(hourMs)
    tell({ type: 'ended' })
    elapse(60_000)
    connected()
    elapse(hourMs)
    expect([is().state, opens.length]).toEqual(['connected', 2])
  })

  test('that turns out to be a hub is watched again', () => {
    const { connected, tell, greet, elapse, is } = machine({ tiers: 2 })
    connected()
    tell({ type: 'event', id: null })
    tell({ type: 'ended' })
    elapse(60_000)
    connected()
    greet({ heartbeatMs: 1000 })
    elapse(8000)
    expect(is().state).not.toBe('connected')
  })
})

test('a first connection that is cut in the middle of its greeting is noticed', () => {
  const { connected, tell, elapse, is } = machine({ tiers: 2 })
  connected()
  elapse(1)
  tell({ type: 'bytes' })
  elapse(31_000)
  expect(is().generation).toBe(2)
})
