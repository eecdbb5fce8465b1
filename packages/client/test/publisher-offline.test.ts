import { afterEach, expect, test, vi } from 'vitest'
import { createPublisher } from '../src/publisher/publisher.ts'
import { fakeClock } from './support/fake-clock.ts'

afterEach(() => {
  vi.unstubAllGlobals()
})

/** A page without a network, and a publisher in it that must not retry. */
function offline() {
  const window = new EventTarget()
  const navigator = { onLine: false }
  vi.stubGlobal('navigator', navigator)
  vi.stubGlobal('addEventListener', window.addEventListener.bind(window))
  vi.stubGlobal('removeEventListener', window.removeEventListener.bind(window))
  const clock = fakeClock()
  const fetch = vi.fn(async () => {
    if (!navigator.onLine) throw new TypeError('Failed to fetch')
    return Response.json({ id: 'e1' }, { status: 201 })
  })
  const publisher = createPublisher('http://hub/publish', { clock, fetch, maxRetries: 0 })
  const waits = () => expect.poll(() => clock.timers()).toEqual([600_000])
  return { window, navigator, clock, fetch, publisher, waits }
}

test('a publish while the browser is offline waits for the network, and uses up no retries', async () => {
  const { window, navigator, fetch, publisher, waits } = offline()
  const published = publisher.publish('a', { data: 1 })
  await waits()
  navigator.onLine = true
  window.dispatchEvent(new Event('online'))
  expect(await published).toEqual({ id: 'e1' })
  expect(fetch).toHaveBeenCalledTimes(2)
})

test('a publish that waits for the network ends when its signal is aborted', async () => {
  const { publisher, waits } = offline()
  const controller = new AbortController()
  const published = publisher.publish('a', { data: 1 }, { signal: controller.signal })
  await waits()
  controller.abort(new Error('enough'))
  await expect(published).rejects.toThrow('enough')
})

test('a publish waits for the network no longer than a hub remembers its key', async () => {
  const { clock, publisher, waits } = offline()
  const published = publisher.publish('a', { data: 1 })
  await waits()
  clock.advance(600_001)
  await expect(published).rejects.toMatchObject({ code: 'unreachable' })
})
