import { describe, expect, test, vi } from 'vitest'
import { hello, message } from './support/scripted-server.ts'
import { clock, moved, page, retried, server, start, stateOf, useStage } from './support/stage.ts'

useStage()

describe('a connection', () => {
  test('that falls silent is replaced', async () => {
    const { stream, events } = start()
    const first = await server.stream()
    first.send(...hello({ heartbeatMs: 1000 }, 'e0'))
    first.send(...message('e1'))
    await events.until(1)
    clock.advance(7000)
    await first.gone
    await retried(stream)
    expect((await server.visit()).headers['last-event-id']).toBe('e1')
  })

  test('that carries heartbeats is kept', async () => {
    const { stream, events } = start()
    const first = await server.stream()
    first.send(...hello({ heartbeatMs: 1000 }, 'e0'))
    for (let beat = 1; beat <= 5; beat++) {
      // The comment has arrived when what was sent after it has.
      first.send(': hb')
      first.send(...message(`e${beat}`))
      await events.until(beat)
      clock.advance(6999)
    }
    expect(stream.state).toMatchObject({ state: 'connected', attempt: 0 })
    expect(server.visits()).toBe(1)
  })

  test('whose heartbeat is longer than any timer is not taken for dead at once', async () => {
    page()
    const { stream } = start()
    const first = await server.stream()
    first.send(...hello({ heartbeatMs: 2 ** 40 }, 'e0'))
    await moved(stream, 'e0')
    expect(Math.max(...clock.timers())).toBeLessThan(2 ** 31)
    clock.advance(2 ** 31)
    expect(stream.state.state).toBe('connected')
    expect(Math.max(...clock.timers())).toBeLessThan(2 ** 31)
  })

  test.each(['online', 'pageshow'])('is tried again at once on %s', async (type) => {
    const { window } = page()
    const { stream } = start()
    ;(await server.visit()).cut()
    await stateOf(stream, 'backoff')
    window.dispatchEvent(new Event(type))
    expect(stream.state.state).toBe('connecting')
    await server.visit()
  })

  test('is tried again at once when the tab is seen again, and not when it is hidden', async () => {
    const { window, document } = page()
    const { stream } = start()
    ;(await server.visit()).cut()
    await stateOf(stream, 'backoff')
    document.visibilityState = 'hidden'
    window.dispatchEvent(new Event('visibilitychange'))
    expect(stream.state.state).toBe('backoff')
    document.visibilityState = 'visible'
    window.dispatchEvent(new Event('visibilitychange'))
    expect(stream.state.state).toBe('connecting')
    await server.visit()
  })

  test('of a stream that is closed listens to the page no more', () => {
    const signals = vi.fn()
    vi.stubGlobal('addEventListener', signals)
    start().stream.close()
    const options = signals.mock.calls.map(([, , given]) => given as AddEventListenerOptions)
    expect(options.map(({ signal }) => signal?.aborted)).toEqual([true, true, true, true, true])
  })
})
