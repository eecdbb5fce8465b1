import { createVirtualEnvironment } from '@rejoin/hub/testing'
import { describe, expect, test } from 'vitest'
import { createObservers, type HubObservations } from '../../src/hub/observation.ts'
import { recommendWindow, watchWindow } from '../../src/hub/sizing.ts'
import type { Window } from '../../src/log/contract.ts'

test('a phone that is away for a minute, at five events a second, needs 600 events', () => {
  expect(recommendWindow({ absenceMs: 60_000, eventsPerSecond: 5 })).toEqual({ maxEvents: 600, maxAgeMs: 120_000 })
})

describe('a hub that watches its window', () => {
  const reader = { connection: 'c_1', ip: null, userAgent: null, subject: null, requested: 'id' }
  const orders = ['orders/42']

  function watch({ eventsPerSecond = 5, maxEvents = 500, maxAgeMs = 3_600_000, own = 0 } = {}) {
    const environment = createVirtualEnvironment()
    const observers = createObservers()
    const told: HubObservations['window'][] = []
    observers.on('window', (small) => told.push(small))
    const held = (channel: string): Window => ({
      ...{ channel, events: maxEvents, bytes: 0, trimmedThrough: { ms: 0, seq: 0 } },
      oldest: { ms: 1_000_000, seq: 0 },
      newest: { ms: 1_000_000 + (maxEvents / eventsPerSecond) * 1000, seq: 0 },
    })
    const log = {
      window: { maxEvents, maxAgeMs, maxBytes: 1_000_000 },
      windowOf: () => ({ maxEvents: own || maxEvents, maxAgeMs, maxBytes: 1_000_000 }),
      windows: async (channels: readonly string[]) => channels.map(held),
    }
    const stop = watchWindow({ log, observers, environment })
    const come = (absenceMs: number | null, times = 1) => {
      for (let n = 0; n < times; n += 1) {
        observers.tell('replay', { ...reader, channels: orders, replayed: 1, elapsedMs: 1, absenceMs })
      }
    }
    return { environment, observers, told, come, stop }
  }

  test('says which channel keeps too little for returning readers, and how much it needs', async () => {
    const { environment, told, come } = watch()
    come(1000, 50)
    come(60_000, 2)
    await environment.advance(600_000)
    expect(told).toMatchObject([
      { channel: 'orders/42', absenceMs: 60_000, eventsPerSecond: 5, needs: { maxEvents: 600, maxAgeMs: 120_000 } },
    ])
  })

  test('is silent while twice the longest usual absence fits', async () => {
    const { environment, told, come } = watch({ maxEvents: 600 })
    come(60_000, 50)
    await environment.advance(600_000)
    expect(told).toEqual([])
  })

  test('judges a channel by the window of its own name or pattern, where it has one', async () => {
    const larger = watch({ own: 600 })
    larger.come(60_000, 50)
    await larger.environment.advance(600_000)
    expect(larger.told).toEqual([])
    const smaller = watch({ maxEvents: 600, own: 100 })
    smaller.come(60_000, 50)
    await smaller.environment.advance(600_000)
    expect(smaller.told).toMatchObject([{ has: { maxEvents: 100 }, needs: { maxEvents: 600 } }])
  })

  test('counts the absences that ended in a gap', async () => {
    const { environment, observers, told } = watch({ eventsPerSecond: 0.01, maxAgeMs: 300_000 })
    for (let n = 0; n < 20; n += 1) {
      observers.tell('gap', {
        ...reader,
        channels: orders,
        reason: 'expired',
        absenceMs: 400_000,
        resuming: true,
        replayed: 0,
      })
    }
    await environment.advance(600_000)
    expect(told).toMatchObject([{ needs: { maxAgeMs: 800_000 }, has: { maxAgeMs: 300_000 } }])
  })

  test('draws no conclusion from a handful of returns, or from those that missed nothing', async () => {
    const { environment, told, come } = watch()
    come(60_000, 19)
    come(null, 100)
    await environment.advance(600_000)
    expect(told).toEqual([])
  })

  test('repeats itself only for new returns, and stops with the hub', async () => {
    const { environment, told, come, stop } = watch()
    come(60_000, 50)
    await environment.advance(1_800_000)
    expect(told).toHaveLength(1)
    come(60_000, 50)
    stop()
    await environment.advance(1_800_000)
    expect(told).toHaveLength(1)
  })
})
