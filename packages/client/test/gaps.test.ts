import { describe, expect, test, vi } from 'vitest'
import { connect, type EventStream } from '../src/index.ts'
import { hello, message } from './support/scripted-server.ts'
import { clock, deferred, moved, opened, retried, server, start, stateOf, useStage } from './support/stage.ts'

useStage()

describe('a gap', () => {
  const gap = { reason: 'expired', channels: ['orders'], requested: 'e1', oldest: 'e7', latest: 'e9' }
  const syncRequired = ['id: e9', 'event: sync-required', `data: ${JSON.stringify(gap)}`]

  test('is told before the events after it, and moves the cursor (§4.6)', async () => {
    const { stream, events } = start({ from: 'e1' })
    const order: unknown[] = []
    stream.onSync((told) => order.push(told))
    stream.on('message', (event) => order.push(event.id))
    const first = await server.stream()
    first.write(`${[...hello({ requested: 'e1' }), '', ...syncRequired, '', ...message('e10')].join('\n')}\n\n`)
    await events.until(1)
    expect(order).toEqual([gap, 'e10'])
  })

  test('brings the retained values of the channels, in order, and values that cannot be read go to onInvalid (§4.6)', async () => {
    const schema = (accept: (value: unknown) => boolean) => ({
      '~standard': {
        version: 1 as const,
        // Async, so that one that took longer would be out of order.
        validate: async (value: unknown) => (accept(value) ? { value } : { issues: [{ message: 'no number' }] }),
      },
    })
    const { stream, events } = start({ from: 'e1', schemas: { price: schema((value) => typeof value === 'number') } })
    const order: unknown[] = []
    stream.onSync(({ retained }) => order.push(retained))
    const invalid: unknown[] = []
    stream.onInvalid(({ id, error }) => invalid.push([id, error]))
    stream.on('message', ({ id }) => order.push(id))
    const kept = (id: string, type: string, data: string) => ({ id, channel: 'orders', key: id, type, data })
    const retained = [
      kept('e5', 'price', '5'),
      kept('e6', 'price', '"six"'),
      kept('e7', 'message', '{"a":1}'),
      kept('e8', 'message', '{'),
    ]
    const first = await server.stream()
    const told = ['id: e9', 'event: sync-required', `data: ${JSON.stringify({ ...gap, retained })}`]
    first.write(`${[...hello({ requested: 'e1' }), '', ...told, '', ...message('e10')].join('\n')}\n\n`)
    await events.until(1)
    const read = [
      { ...retained[0], data: 5 },
      { ...retained[2], data: { a: 1 } },
    ]
    expect(order).toEqual([read, 'e10'])
    expect(invalid).toEqual([
      ['e6', [{ message: 'no number' }]],
      ['e8', expect.any(SyntaxError)],
    ])
    expect(stream.cursor).toBe('e10')
  })

  test.each(['7', '{}', '"all"', '[null]'])('with %s as its retained values is told all the same', async (retained) => {
    const { stream, events } = start({ from: 'e1' })
    const told: unknown[] = []
    stream.onSync(({ reason }) => told.push(reason))
    stream.onInvalid(() => undefined)
    const first = await server.stream()
    first.send(...hello({ requested: 'e1' }))
    first.send('id: e9', 'event: sync-required', `data: {"reason":"expired","retained":${retained}}`)
    first.send(...message('e10'))
    await events.until(1)
    expect(told).toEqual(['expired'])
  })

  test('holds later events, and the cursor, until the reload is done', async () => {
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
    const sync = vi.fn(() => {
      told.resolve()
      return reload.promise
    })
    stream.onSync(sync)
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
    // What was loaded reaches up to e9, and need not be loaded again for a connection that asked too early.
    const third = await server.stream()
    expect(third.headers['last-event-id']).toBe('e9')
    third.send(...hello({ resumed: true, requested: 'e9' }, 'e9'))
    third.send(...message('e10'))
    expect(await events.until(1)).toEqual(['e10'])
    expect(sync).toHaveBeenCalledOnce()
  })

  test.each<[string, (stream: EventStream) => unknown]>([
    ['at once', (stream) => stream.reconnect()],
    [
      'before a reload',
      async (stream) => {
        stream.reconnect()
        await new Promise((resolve) => setImmediate(resolve))
      },
    ],
    [
      'after a reload',
      async (stream) => {
        await new Promise((resolve) => setImmediate(resolve))
        stream.reconnect()
      },
    ],
  ])('for which a handler reconnects %s costs one reload, and the stream goes on after it', async (_, reload) => {
    const { stream, events } = start({ from: 'e1' })
    const sync = vi.fn(() => reload(stream))
    stream.onSync(sync)
    const first = await server.stream()
    first.send(...hello({ requested: 'e1' }))
    first.send(...syncRequired)
    let visit = await server.visit()
    // One that asked before the reload was done is let go of.
    if (visit.headers['last-event-id'] === 'e1') visit = await server.visit()
    expect(visit.headers['last-event-id']).toBe('e9')
    visit.answer(200, { 'content-type': 'text/event-stream' })
    visit.send(...hello({ resumed: true, requested: 'e9' }, 'e9'))
    visit.send(...message('e10'))
    expect(await events.until(1)).toEqual(['e10'])
    expect(sync).toHaveBeenCalledOnce()
  })

  test('whose connection is cut during the reload is not loaded again', async () => {
    const { stream, events } = start({ from: 'e1' })
    const told = deferred()
    const reload = deferred()
    const sync = vi.fn(() => {
      told.resolve()
      return reload.promise
    })
    stream.onSync(sync)
    const first = await server.stream()
    first.send(...hello({ requested: 'e1' }))
    first.send(...syncRequired)
    await told.promise
    stream.reconnect()
    ;(await server.visit()).cut()
    await stateOf(stream, 'backoff')
    reload.resolve()
    await moved(stream, 'e9')
    await retried(stream)
    const second = await server.stream()
    expect(second.headers['last-event-id']).toBe('e9')
    second.send(...hello({ resumed: true, requested: 'e9' }, 'e9'))
    second.send(...message('e10'))
    await events.until(1)
    expect(sync).toHaveBeenCalledOnce()
  })

  test('that a handler closes the stream for is dealt with, and not told again to the next stream', async () => {
    const { stream } = start({ from: 'e1' })
    stream.onSync(() => stream.close())
    const first = await server.stream()
    first.send(...hello({ requested: 'e1' }))
    first.send(...syncRequired)
    await stateOf(stream, 'closed')
    expect(stream.cursor).toBe('e9')
  })

  test('pauses reading during its reload, so that later events do not pile up in memory', async () => {
    const first = [...hello({ requested: 'e1' }), '', ...syncRequired]
    const chunks = [`${first.join('\n')}\n\n`, ...Array.from({ length: 99 }, (_, n) => `id: x${n}\ndata: 1\n\n`)]
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

  test('of channels that were added is requested until its reload is done, and then no more (§3.3)', async () => {
    const stream = connect(`${server.url}?channel=paid&added=paid`, { clock, from: 'e1' })
    opened.push(stream)
    const told = deferred()
    const reload = deferred()
    stream.onSync(() => {
      told.resolve()
      return reload.promise
    })
    const first = await server.stream()
    first.send(...hello({ resumed: true, requested: 'e1' }, 'e1'))
    first.send('id: e1', 'event: sync-required', 'data: {"reason":"added","channels":["paid"]}')
    await told.promise
    stream.reconnect()
    expect((await server.visit()).url.searchParams.getAll('added')).toEqual(['paid'])

    reload.resolve()
    await new Promise((resolve) => setImmediate(resolve))
    stream.reconnect()
    const { searchParams } = (await server.visit()).url
    expect(searchParams.getAll('channel')).toEqual(['paid'])
    expect(searchParams.has('added')).toBe(false)
  })

  test('makes an id that was seen before count as new', async () => {
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
