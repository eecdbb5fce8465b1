import type { LogSource } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { describe, expect, test, vi } from 'vitest'
import { publish } from '../../support/publishing.ts'
import { openHub } from '../../support/recorder.ts'

describe.each([
  ['from memory', 16 * 1024 * 1024],
  ['from the log', 1],
])('a reader of a pattern, served %s', (_where, hotBytes) => {
  test('gets what is published below it while it is here, and nothing else', async () => {
    const { hub, environment, connect } = await openHub({ hotBytes })
    const reader = connect('orders/*')
    const everything = connect('*')
    await environment.settle()
    await publish(hub, 'orders/1', 1)
    await publish(hub, 'orders', 2)
    await publish(hub, 'orders/2/eu', 3)
    await publish(hub, 'stock/1', 4)
    await environment.settle()
    expect(reader.data).toEqual(['1', '3'])
    expect(everything.data).toEqual(['1', '2', '3', '4'])
  })

  test('comes back with one id for all its channels, those that are new included', async () => {
    const { hub, environment, connect } = await openHub({ hotBytes })
    const reader = connect('orders/*')
    await publish(hub, 'orders/1', 1)
    await environment.settle()
    reader.session.disconnected()
    await publish(hub, 'orders/2', 2)
    await publish(hub, 'stock/1', 99)
    await publish(hub, 'orders/1', 3)
    const returned = connect('orders/*', { cursor: reader.lastId })
    await environment.settle()
    await publish(hub, 'orders/3', 4)
    await environment.settle()
    expect(returned.data).toEqual(['2', '3', '4'])
    expect(returned.events.map((event) => event.type)).not.toContain('sync-required')
  })

  test('gets an event once that two of the names it asked for cover', async () => {
    const { hub, environment, connect } = await openHub({ hotBytes })
    const [first] = await publish(hub, 'a/1', 0)
    const reader = connect(['a/*', 'a/1', 'a/b/*', 'c'], { cursor: first as string })
    await publish(hub, 'a/1', 1)
    await publish(hub, 'a/b/2', 2)
    await publish(hub, 'c', 3)
    await environment.settle()
    await publish(hub, 'a/b/2', 4)
    await environment.settle()
    expect(reader.data).toEqual(['1', '2', '3', '4'])
    expect(reader.session.subscription.selectors).toEqual(['a/*', 'c'])
  })

  test('is told, under the name it asked for, when one of its channels has lost something (§4.6)', async () => {
    const { hub, environment, connect } = await openHub({ hotBytes: 1, log: memoryLog({ window: { maxEvents: 2 } }) })
    const reader = connect('orders/*')
    await environment.settle()
    reader.session.disconnected()
    await publish(hub, 'orders/1', 1, 2, 3)
    await publish(hub, 'orders/2', 4)
    const returned = connect('orders/*', { cursor: reader.lastId })
    await environment.settle()
    const sync = returned.events.find((event) => event.type === 'sync-required')
    expect(JSON.parse(sync?.data ?? '')).toMatchObject({ reason: 'expired', channels: ['orders/*'] })
    await publish(hub, 'orders/2', 5)
    await environment.settle()
    expect(returned.data).toEqual(['5'])
  })

  test('is told of an invalidation below it, while connected or when it returns', async () => {
    const { hub, environment, connect } = await openHub({ hotBytes })
    const here = connect('a/*')
    const other = connect('b/*')
    await publish(hub, 'a/1', 1)
    await environment.settle()
    await hub.invalidate('a/1')
    await environment.settle()
    const away = connect('a/*', { cursor: here.events.find((event) => event.data === '1')?.id as string })
    await environment.settle()
    for (const reader of [here, away]) {
      expect(
        reader.events.filter((event) => event.type === 'sync-required').map(({ data }) => JSON.parse(data)),
      ).toEqual([expect.objectContaining({ reason: 'forced', channels: ['a/*'] })])
    }
    expect(other.events.map((event) => event.type)).not.toContain('sync-required')
  })
})

test('a reader of a pattern gets no event that was invalidated, although another reader got it before', async () => {
  const { hub, environment, connect } = await openHub({ hotBytes: 4000 })
  const [first] = await publish(hub, 'a/1', 1, 2, 3)
  // Out of the hot window, for what comes next: both readers are served from what was read of the log.
  await publish(hub, 'b', ...Array.from({ length: 50 }, (_, index) => index))
  const before = connect('a/*', { cursor: first as string })
  await environment.settle()
  await hub.invalidate('a/1')
  const after = connect('a/*', { cursor: first as string })
  await environment.settle()
  expect([before.data, after.data]).toEqual([['2', '3'], []])
})

describe('fifty readers of a pattern with a bad cursor', () => {
  /** A log that counts how often it is asked what all channels below a pattern hold. */
  function countedLog() {
    const inner = memoryLog()
    const looks = vi.fn()
    const source: LogSource = {
      name: inner.name,
      async open(environment) {
        const log = await inner.open(environment)
        const { windows } = log
        const counted: typeof windows = (names) => {
          if (names.includes('*')) looks()
          return windows.call(log, names)
        }
        return Object.assign(log, { windows: counted })
      },
    }
    return { source, looks }
  }

  test('are told without a look at every channel', async () => {
    const { source, looks } = countedLog()
    const { hub, environment, connect } = await openHub({ log: source })
    await publish(hub, 'a', 1)
    const readers = Array.from({ length: 50 }, () => connect('*', { cursor: 'nonsense' }))
    await environment.settle()
    for (const reader of readers) expect(reader.events.map(({ type }) => type)).toEqual(['hello', 'sync-required'])
    expect(looks).not.toHaveBeenCalled()
  })

  test('share one look where the events since their snapshot are no longer at hand', async () => {
    const { source, looks } = countedLog()
    const finish: ((state: unknown) => void)[] = []
    const snapshot = () => new Promise((resolve) => void finish.push(resolve))
    const { hub, environment, connect } = await openHub({ log: source, hotBytes: 1, snapshot })
    await publish(hub, 'a', 1)
    const readers = Array.from({ length: 50 }, () => connect('*', { cursor: 'nonsense' }))
    await environment.settle()
    await publish(hub, 'a', 2, 3)
    finish[0]?.('state')
    await environment.settle()
    for (const reader of readers) expect(reader.data).toEqual(['2', '3'])
    expect(looks).toHaveBeenCalledTimes(1)
  })
})

test('a hub counts the readers of a channel, those of patterns over it included', async () => {
  const { hub, connect } = await openHub()
  connect('a/1')
  const pattern = connect('a/*')
  connect(['b', 'a/2'])
  connect('*')
  expect([hub.readers('a/1'), hub.readers('a/2'), hub.readers('b'), hub.readers('c')]).toEqual([3, 3, 2, 1])
  pattern.session.disconnected()
  expect([hub.readers('a/1'), hub.readers('a/2')]).toEqual([2, 2])
})
