import { describe, expect, test } from 'vitest'
import { machine } from '../support/machine.ts'

const hourMs = 3_600_000

describe('a server that is no hub, and quiet,', () => {
  test('that starts with a comment is left alone for twice as long each time', () => {
    const { connected, tell, elapse, is, opens } = machine({ tiers: 2 })
    const opensIn = (ms: number) => {
      const before = opens.length
      for (let passed = 0; passed < ms; passed += 1000) {
        if (is().state === 'connecting') {
          connected()
          elapse(1)
          tell({ type: 'bytes' })
        }
        elapse(1000)
      }
      return opens.length - before
    }
    expect(opensIn(hourMs)).toBeLessThanOrEqual(7)
    expect(opensIn(hourMs)).toBeLessThanOrEqual(1)
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

  test('is found out once when it says nothing at all: it has no polls, and then its stream is kept', () => {
    const { connected, tell, elapse, is, opens } = machine({ tiers: 2 })
    for (let silence = 0; silence < 2; silence += 1) {
      connected()
      elapse(31_000)
      elapse(1000)
    }
    expect(is().tier).toBe(1)
    tell({ type: 'answered', status: 404, isStream: false, retryAfterMs: 0, isElsewhere: true })
    elapse(60_000)
    expect(is()).toMatchObject({ tier: 0, state: 'connecting' })
    connected()
    const opened = opens.length
    elapse(hourMs)
    expect([is().state, opens.length]).toEqual(['connected', opened])
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
