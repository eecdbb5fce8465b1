import { describe, expect, expectTypeOf, test, vi } from 'vitest'
import { connect, type StreamState } from '../src/index.ts'
import { hello, message } from './scripted-server.ts'
import { clock, deferred, moved, opened, page, recorder, retried, server, start, stateOf } from './stage.ts'

describe('resuming', () => {
  test('a stream that is cut comes back with the last id it handled, and gets the rest', async () => {
    const { stream, events } = start()
    const first = await server.stream()
    expect(first.headers['last-event-id']).toBeUndefined()
    first.send(...hello({}, 'e0'))
    first.send(...message('e1'))
    first.send(...message('e2'))
    await events.until(2)
    first.cut()
    await retried(stream)

    const second = await server.stream()
    expect(second.headers['last-event-id']).toBe('e2')
    second.send(...hello({ resumed: true, requested: 'e2' }, 'e2'))
    second.send(...message('e3'))
    expect(await events.until(3)).toEqual(['e1', 'e2', 'e3'])
    expect(stream.cursor).toBe('e3')
  })

  test('a stream that saw no event comes back to where it started', async () => {
    const { stream } = start()
    const first = await server.stream()
    first.send(...hello({}, 'e0'))
    await moved(stream, 'e0')
    first.end()
    await retried(stream)
    expect((await server.visit()).headers['last-event-id']).toBe('e0')
  })

  test('an event that was cut before its blank line is asked for again (§6)', async () => {
    const { stream, events } = start()
    const first = await server.stream()
    first.send(...hello({}, 'e0'))
    first.send(...message('e1'))
    first.write('id: e2\ndata: "half"\n')
    await events.until(1)
    first.cut()
    await retried(stream)

    const second = await server.stream()
    expect(second.headers['last-event-id']).toBe('e1')
    second.send(...hello({ resumed: true, requested: 'e1' }, 'e1'))
    second.send(...message('e2', 'whole'))
    expect(await events.until(2)).toEqual(['e1', 'whole'])
  })

  test('an event that a server sends again is delivered once', async () => {
    const { stream, events } = start()
    const first = await server.stream()
    first.send(...hello({}, 'e0'))
    first.send(...message('e1'))
    first.send(...message('e2'))
    await events.until(2)
    first.cut()
    await retried(stream)

    const second = await server.stream()
    second.send(...hello({ resumed: true, requested: 'e2' }, 'e2'))
    for (const id of ['e2', 'e2', 'e1', 'e3', 'e3', 'e4']) second.send(...message(id))
    expect(await events.until(4)).toEqual(['e1', 'e2', 'e3', 'e4'])
  })

  test('an event that another kind of server sends again after a cut is delivered once', async () => {
    const { stream, events } = start()
    const first = await server.stream()
    first.send(...message('e1'))
    await events.until(1)
    first.cut()
    await retried(stream)

    const second = await server.stream()
    for (const id of ['e1', 'e2']) second.send(...message(id))
    expect(await events.until(2)).toEqual(['e1', 'e2'])
  })

  test('events of a server that numbers only some of them all arrive', async () => {
    const { events } = start()
    const first = await server.stream()
    first.send('data: 1')
    first.send('id: e1', 'data: 2')
    first.send('data: 3')
    first.send('data: 4')
    expect(await events.until(4)).toEqual([1, 2, 3, 4])
    expect(events.all.map((event) => event.id)).toEqual(['', 'e1', 'e1', 'e1'])
  })

  test('a block with an id and no data moves the place too (§6)', async () => {
    const { stream } = start()
    const first = await server.stream()
    first.send(...hello({}, 'e0'))
    first.send('id: e5')
    await moved(stream, 'e5')
  })

  test('a comment does not erase the place (§6)', async () => {
    const { stream, events } = start({ from: 'e1' })
    const first = await server.stream()
    first.send(': hb')
    first.send('retry: 100')
    first.send('data: 1')
    await events.until(1)
    expect(stream.cursor).toBe('e1')
    expect(events.all[0]?.id).toBe('e1')
  })

  test('a stream continues where an earlier one was left', async () => {
    start({ from: 'e7' })
    expect((await server.visit()).headers['last-event-id']).toBe('e7')
  })

  test('a reserved type that is not known is ignored, but its id is taken (§4.8)', async () => {
    const { stream, events } = start()
    const first = await server.stream()
    first.send(...hello({}, 'e0'))
    first.send('id: e9', 'event: checkpoint', 'data: {}')
    await moved(stream, 'e9')
    expect(events.all).toEqual([])
  })

  test('a proxy that strips the header is noticed, and the place goes into the URL (§4.4)', async () => {
    const { stream, events } = start({ from: 'e1' })
    const first = await server.stream()
    first.send(...hello({ requested: null }, 'e5'))
    first.send(...message('e6'))

    const second = await server.stream()
    expect(second.url.searchParams.get('lastEventId')).toBe('e1')
    expect(second.headers['last-event-id']).toBeUndefined()
    expect(stream.cursor).toBe('e1')
    second.send(...hello({ resumed: true, requested: 'e1' }, 'e1'))
    for (const id of ['e2', 'e6']) second.send(...message(id))
    expect(await events.until(2)).toEqual(['e2', 'e6'])
    second.cut()
    await retried(stream)
    expect((await server.visit()).url.searchParams.get('lastEventId')).toBe('e6')
  })

  test('a place that never reaches the hub is told as a gap', async () => {
    const { stream, events } = start({ from: 'e1' })
    const gaps: unknown[] = []
    stream.onSync((gap) => gaps.push(gap))
    ;(await server.stream()).send(...hello({ requested: null }, 'e5'))
    const second = await server.stream()
    second.send(...hello({ requested: null }, 'e5'))
    second.send(...message('e6'))
    await events.until(1)
    expect(gaps).toEqual([expect.objectContaining({ requested: 'e1', latest: 'e5' })])
  })
})

describe('a gap', () => {
  const gap = { reason: 'expired', channels: ['orders'], requested: 'e1', oldest: 'e7', latest: 'e9' }
  const syncRequired = ['id: e9', 'event: sync-required', `data: ${JSON.stringify(gap)}`]

  test('is told before the events after it, and moves the place (§4.6)', async () => {
    const { stream, events } = start({ from: 'e1' })
    const order: unknown[] = []
    stream.onSync((told) => order.push(told))
    stream.on('message', (event) => order.push(event.id))
    const first = await server.stream()
    first.write(`${[...hello({ requested: 'e1' }), '', ...syncRequired, '', ...message('e10')].join('\n')}\n\n`)
    await events.until(1)
    expect(order).toEqual([gap, 'e10'])
  })

  test('holds later events, and the place, until the reload is done', async () => {
    const { stream, events } = start({ from: 'e1' })
    const told = deferred()
    const reload = deferred()
    stream.onSync(() => {
      told.resolve()
      return reload.promise
    })
    const first = await server.stream()
    first.send(...hello({ requested: 'e1', heartbeatMs: 1000 }))
    first.send(...syncRequired)
    first.send(...message('e10'))
    await told.promise
    // No heartbeat is read meanwhile, which must not be taken for a dead line.
    clock.advance(60_000)
    expect(stream.cursor).toBe('e1')
    expect(events.all).toEqual([])
    reload.resolve()
    expect(await events.until(1)).toEqual(['e10'])
    expect(server.visits()).toBe(1)
  })

  test('holds the events of the next connection too, when the reload takes longer than its own', async () => {
    const { stream, events } = start({ from: 'e1' })
    const told = deferred()
    const reload = deferred()
    const reloads = [reload.promise, undefined]
    stream.onSync(() => {
      told.resolve()
      return reloads.shift()
    })
    const first = await server.stream()
    first.send(...hello({ requested: 'e1' }))
    first.send(...syncRequired)
    await told.promise
    stream.reconnect()
    const second = await server.stream()
    expect(second.headers['last-event-id']).toBe('e1')
    second.send(...hello({ requested: 'e1' }))
    second.send(...syncRequired)
    second.send(...message('e10'))
    await stateOf(stream, 'connected')
    expect(events.all).toEqual([])
    reload.resolve()
    await events.until(1)
    expect(reloads).toEqual([])
  })

  test('stops the reading, so that what arrives meanwhile does not pile up here', async () => {
    const chunks = [`${syncRequired.join('\n')}\n\n`, ...Array.from({ length: 99 }, (_, n) => `id: x${n}\ndata: 1\n\n`)]
    let read = 0
    const body = new ReadableStream({
      pull(controller) {
        const chunk = chunks[read++]
        if (chunk === undefined) controller.close()
        else controller.enqueue(new TextEncoder().encode(chunk))
      },
    })
    const response = new Response(body, { headers: { 'content-type': 'text/event-stream' } })
    const { stream, events } = start({ fetch: async () => response })
    const told = deferred()
    const reload = deferred()
    stream.onSync(() => {
      told.resolve()
      return reload.promise
    })
    await told.promise
    // More turns than all chunks would take.
    for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(read).toBeLessThan(5)
    reload.resolve()
    await events.until(99)
  })

  test('makes an id that was seen before a new one', async () => {
    const { stream, events } = start()
    stream.onSync(() => 'told')
    const first = await server.stream()
    first.send(...hello({}, 'e0'))
    first.send(...message('e1'))
    first.send(...syncRequired)
    first.send(...message('e1', 'of another history'))
    expect(await events.until(2)).toEqual(['e1', 'of another history'])
  })

  test('whose reload fails is reported, and the stream goes on', async () => {
    const error = vi.spyOn(console, 'error').mockReturnValue()
    const { stream, events } = start({ from: 'e1' })
    stream.onSync(() => Promise.reject(new Error('offline')))
    const first = await server.stream()
    first.send(...hello({ requested: 'e1' }))
    first.send(...syncRequired)
    first.send(...message('e10'))
    await events.until(1)
    expect(error).toHaveBeenCalledWith(expect.objectContaining({ message: 'offline' }))
  })

  test('that nobody listens to is not passed over in silence', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    const { events } = start({ from: 'e1' })
    const first = await server.stream()
    first.send(...hello({ requested: 'e1' }))
    first.send(...syncRequired)
    first.send(...syncRequired)
    first.send(...message('e10'))
    await events.until(1)
    expect(warn).toHaveBeenCalledExactlyOnceWith('Rejoin:', expect.stringContaining('onSync'))
  })
})

describe('handlers', () => {
  test('get the events of their type, with the data parsed', async () => {
    type Events = { shipped: { at: number }; paid: string }
    const stream = connect<Events>(server.url, { clock })
    opened.push(stream)
    const shipped: number[] = []
    const off = stream.on('shipped', (event) => {
      expectTypeOf(event.data).toEqualTypeOf<{ at: number }>()
      shipped.push(event.data.at)
    })
    const everything = recorder(stream)
    stream.on('*', (event) => {
      if (event.type === 'paid') expectTypeOf(event.data).toEqualTypeOf<string>()
    })
    const first = await server.stream()
    first.send('id: e1', 'event: shipped', 'data: {"at":1}')
    first.send('id: e2', 'event: paid', 'data: "yes"')
    await everything.until(2)
    off()
    first.send('id: e3', 'event: shipped', 'data: {"at":3}')
    expect(await everything.until(3)).toEqual([{ at: 1 }, 'yes', { at: 3 }])
    expect(shipped).toEqual([1])
  })

  test('for all types get an event once, whatever its type', async () => {
    const { events } = start()
    const first = await server.stream()
    first.send('id: e1', 'event: *', 'data: 1')
    first.send(...message('e2'))
    expect(await events.until(2)).toEqual([1, 'e2'])
  })

  test('get the text as it is, when asked to', async () => {
    const { events } = start({ parse: 'text' })
    const first = await server.stream()
    first.send('data: {"a":', 'data: 1}')
    expect(await events.until(1)).toEqual(['{"a":\n1}'])
  })

  test('that close the stream silence the rest of the chunk', async () => {
    const { stream, events } = start()
    stream.on('message', (event) => {
      if (event.id === 'e2') stream.close()
    })
    const late = vi.fn()
    stream.on('message', late)
    const first = await server.stream()
    first.write([1, 2, 3, 4].map((n) => `${message(`e${n}`).join('\n')}\n\n`).join(''))
    await first.gone
    expect(events.data()).toEqual(['e1'])
    expect(late.mock.calls.map(([event]) => event.id)).toEqual(['e1'])
    expect(stream.state).toMatchObject({ state: 'closed', closeReason: 'closed', cursor: 'e2' })
  })

  test('that reconnect do not get the same event twice', async () => {
    const { stream, events } = start()
    stream.on('message', (event) => {
      if (event.id === 'e1') stream.reconnect()
    })
    const first = await server.stream()
    first.write([1, 2].map((n) => `${message(`e${n}`).join('\n')}\n\n`).join(''))
    const second = await server.stream()
    for (const id of ['e1', 'e2']) second.send(...message(id))
    expect(await events.until(2)).toEqual(['e1', 'e2'])
  })

  test('that throw are reported, and keep neither their neighbours nor later events from being handled', async () => {
    const error = vi.spyOn(console, 'error').mockReturnValue()
    const stream = connect(server.url, { clock })
    opened.push(stream)
    stream.on('message', (event) => {
      if (event.id === 'e1') throw new Error('mine')
      return Promise.reject(new Error('also mine'))
    })
    const events = recorder(stream)
    const first = await server.stream()
    first.send(...message('e1'))
    first.send(...message('e2'))
    first.send(...message('e3'))
    expect(await events.until(3)).toEqual(['e1', 'e2', 'e3'])
    expect(stream.cursor).toBe('e3')
    expect(error.mock.calls.map(([reported]) => reported.message)).toEqual(['mine', 'also mine', 'also mine'])
  })

  test('that throw are reported as uncaught where the platform can do that', async () => {
    const reportError = vi.fn()
    vi.stubGlobal('reportError', reportError)
    const { stream, events } = start()
    stream.on('message', () => {
      throw new Error('mine')
    })
    ;(await server.stream()).send(...message('e1'))
    await events.until(1)
    expect(reportError).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ message: 'mine' }))
  })

  test('are called before the place moves, so that a page left in between loses nothing', async () => {
    const { stream, events } = start()
    const places: unknown[] = []
    stream.on('message', () => places.push(stream.cursor))
    const first = await server.stream()
    first.send(...message('e1'))
    first.send(...message('e2'))
    await events.until(2)
    expect(places).toEqual([null, 'e1'])
  })

  test('for what is not JSON get the text and the error, and the stream goes on', async () => {
    const { stream, events } = start()
    const invalid: unknown[] = []
    stream.onInvalid((event) => invalid.push(event))
    const first = await server.stream()
    first.send('id: e1', 'data: not JSON')
    first.send(...message('e2'))
    await events.until(1)
    expect(invalid).toEqual([{ id: 'e1', type: 'message', data: 'not JSON', error: expect.any(SyntaxError) }])
    expect(stream.cursor).toBe('e2')
  })

  test('are missed, with one warning, when nobody looks at what is not JSON', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    const { events } = start()
    const first = await server.stream()
    first.send('data: not JSON')
    first.send('data: nor this')
    first.send(...message('e2'))
    await events.until(1)
    expect(warn).toHaveBeenCalledExactlyOnceWith('Rejoin:', expect.stringContaining('onInvalid'))
  })
})

describe('a server that refuses', () => {
  test('with 503 and Retry-After is left alone for that long', async () => {
    const { stream, events } = start()
    const first = await server.visit()
    first.answer(503, { 'retry-after': '7' })
    await stateOf(stream, 'backoff')
    clock.advance(6999)
    expect(stream.state).toMatchObject({ state: 'backoff', attempt: 1 })
    clock.advance(500)
    ;(await server.stream()).send(...message('e1'))
    await events.until(1)
    expect(server.visits()).toBe(2)
  })

  test.each([
    [204, 'finished'],
    [401, 'unauthorized'],
    [404, 'http-404'],
  ])('with %i ends the stream: %s', async (status, closeReason) => {
    const { stream } = start()
    ;(await server.visit()).answer(status)
    expect(await stateOf(stream, 'closed')).toMatchObject({ closeReason, nextRetryAt: null })
    expect(clock.timers()).toEqual([])
  })

  test('by sending a page instead of a stream ends it, and is not read', async () => {
    const { stream } = start()
    const first = await server.visit()
    first.answer(200, { 'content-type': 'text/html' })
    expect(await stateOf(stream, 'closed')).toMatchObject({ closeReason: 'wrong-content-type' })
    await first.gone
  })

  test('to be reached is tried again', async () => {
    let failures = 2
    const { stream, events } = start({
      fetch: (...request) => (failures-- > 0 ? Promise.reject(new TypeError('fetch failed')) : fetch(...request)),
    })
    await retried(stream)
    await retried(stream)
    ;(await server.stream()).send(...message('e1'))
    await events.until(1)
  })

  test('to answer at all is given up after 30 s and asked again', async () => {
    const { stream } = start()
    const first = await server.visit()
    clock.advance(30_000)
    await first.gone
    await retried(stream)
    await server.visit()
  })

  test('to end an event ends the stream before it fills the memory', async () => {
    const { stream, events } = start()
    const first = await server.stream()
    first.send(...message('e1'))
    await events.until(1)
    first.write(`data: ${'x'.repeat(17 * 1024 * 1024)}`)
    expect(await stateOf(stream, 'closed')).toMatchObject({ closeReason: 'too-large', cursor: 'e1' })
  })
})

describe('a line', () => {
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

  test('is not listened to once the stream is closed', () => {
    const signals = vi.fn()
    vi.stubGlobal('addEventListener', signals)
    start().stream.close()
    const options = signals.mock.calls.map(([, , given]) => given as AddEventListenerOptions)
    expect(options.map(({ signal }) => signal?.aborted)).toEqual([true, true, true, true])
  })
})

describe('requests', () => {
  test('say what they want, and that nobody may keep it', async () => {
    start({ headers: { 'X-Shop': 'one', 'Last-Event-ID': 'not mine' } })
    const { headers } = await server.visit()
    expect(headers).toMatchObject({ accept: 'text/event-stream', 'cache-control': 'no-cache', 'x-shop': 'one' })
    expect(headers['last-event-id']).toBeUndefined()
  })

  test('carry headers that are made anew for each attempt', async () => {
    let token = 0
    const { stream } = start({ headers: async () => ({ Authorization: `Bearer ${++token}` }) })
    const first = await server.visit()
    expect(first.headers.authorization).toBe('Bearer 1')
    first.cut()
    await retried(stream)
    expect((await server.visit()).headers.authorization).toBe('Bearer 2')
  })

  test('whose headers cannot be made are tried again, and the failure is reported', async () => {
    const error = vi.spyOn(console, 'error').mockReturnValue()
    let failures = 1
    const { stream } = start({
      headers: () => {
        if (failures-- > 0) throw new Error('no token')
        return {}
      },
    })
    await retried(stream)
    await server.visit()
    expect(error).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ message: 'no token' }))
  })

  test('end with the stream', async () => {
    const { stream } = start()
    const first = await server.stream()
    await stateOf(stream, 'connected')
    stream.close()
    await first.gone
    expect(clock.timers()).toEqual([])
  })

  test('are not made once the headers function has closed the stream', async () => {
    const second = deferred<AbortSignal>()
    const { stream } = start({
      headers: () => {
        if (stream.state.attempt === 1) stream.close()
        return {}
      },
      fetch: (input, init) => {
        if (stream.state.attempt === 1) second.resolve(init!.signal!)
        return fetch(input, init)
      },
    })
    ;(await server.visit()).cut()
    await retried(stream)
    expect((await second.promise).aborted).toBe(true)
    expect(clock.timers()).toEqual([])
  })
})

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

describe('what cannot work is refused at once', () => {
  test.each([
    ['a relative URL outside of a page', '/events/orders', {}],
    ['a cursor that is no id', 'http://hub/events', { from: 'two words' }],
    ['a wait that is no number', 'http://hub/events', { retryMs: Number.NaN }],
    ['a negative limit', 'http://hub/events', { maxRetryMs: -1 }],
  ])('%s', (_, url, options) => {
    expect(() => connect(url, options)).toThrow(expect.objectContaining({ code: 'invalid-option' }))
  })
})
