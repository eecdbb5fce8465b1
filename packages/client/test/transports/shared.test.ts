import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Report } from '../../src/connection-input.ts'
import { createSharing } from '../../src/transports/shared.ts'
import type { Block, Sink } from '../../src/transports/transport.ts'

// A browser that does not do what it promises. What tabs do in a good one: test/faults/tabs, test/browser/tabs.

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

/** A hub's stream with a block every second, read by a tab alone. */
async function readFor(seconds: number) {
  const share = createSharing({ shareAcrossTabs: 'anna' }, new URL('http://hub/events/a'))!
  const reports: Report['type'][] = []
  const ids: string[] = []
  let connections = 0
  const controller = new AbortController()
  const own = async (_: unknown, sink: Sink, signal: AbortSignal) => {
    connections += 1
    const hello = JSON.stringify({ resumed: false, requested: null, heartbeatMs: 25_000 })
    sink.tell({ type: 'bytes' })
    await sink.receive({ type: 'hello', id: 'e0', data: hello })
    for (let n = 1; !signal.aborted; n++) {
      await new Promise((resolve) => setTimeout(resolve, 1000))
      sink.tell({ type: 'bytes' })
      await sink.receive({ type: 'message', id: `e${n}`, data: '1' })
    }
  }
  const sink: Sink = {
    tell: ({ type }) => void reports.push(type),
    receive: ({ id, type }: Block) => void (type === 'message' && ids.push(id)),
  }
  const request = { clientId: 'me', generation: 1, cursor: null, refresh: false }
  const reading = share(own)(request, sink, controller.signal)
  reading.catch(() => undefined)
  await vi.advanceTimersByTimeAsync(seconds * 1000)
  controller.abort()
  await vi.advanceTimersByTimeAsync(1000)
  await reading
  return { reports, ids, connections }
}

const locks = {
  request: async (_: string, __: object, run: (lock: object) => unknown) => run({}),
}

const never = () => new Promise<never>(() => undefined)

const securityError = () => new DOMException('The request was denied.', 'SecurityError')

test.each<[string, object]>([
  ['never answer', { request: never }],
  ['are denied to the page', { request: () => Promise.reject(securityError()) }],
])('where locks %s, a tab reads for itself, on one connection, and is not late', async (_, broken) => {
  const error = vi.spyOn(console, 'error').mockReturnValue()
  const request = vi.spyOn(broken as typeof locks, 'request')
  vi.stubGlobal('navigator', { locks: broken })
  const { reports, ids, connections } = await readFor(60)
  expect(connections).toBe(1)
  expect(ids.length).toBeGreaterThan(55)
  expect(reports).not.toContain('late')
  expect(error.mock.calls.length).toBeLessThanOrEqual(1)
  // Requests that never settle would pile up.
  expect(request.mock.calls.length).toBeLessThanOrEqual(40)
})

test.each<[string, () => object]>([
  [
    'cannot be opened',
    () => {
      throw securityError()
    },
  ],
  ['carry nothing', () => ({ postMessage: () => undefined, close: () => undefined })],
])('where channels %s, a tab reads for itself, on one connection, and is not late', async (_, open) => {
  const error = vi.spyOn(console, 'error').mockReturnValue()
  vi.stubGlobal('navigator', { locks })
  vi.stubGlobal('BroadcastChannel', function BroadcastChannel() {
    return open()
  })
  const { reports, ids, connections } = await readFor(60)
  expect(connections).toBe(1)
  expect(ids.length).toBeGreaterThan(55)
  expect(reports).not.toContain('late')
  expect(error.mock.calls.length).toBeLessThanOrEqual(1)
})
