import { describe, expect, expectTypeOf, test, vi } from 'vitest'
import { connect } from '../src/index.ts'
import { hello, message } from './support/scripted-server.ts'
import { clock, moved, opened, recorder, server, start, useStage } from './support/stage.ts'

useStage()

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

  test('that get text are told so by its type', () => {
    const stream = connect(server.url, { clock, parse: 'text' })
    opened.push(stream)
    stream.on('shipped', ({ data }) => expectTypeOf(data).toEqualTypeOf<string>())
    const named = connect<{ shipped: { at: number } }>(server.url, { clock, parse: 'text' })
    opened.push(named)
    named.on('shipped', ({ data }) => expectTypeOf(data).toEqualTypeOf<string>())
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

  test('that reconnect leave the cursor at their event, once the next connection has shown it again', async () => {
    const saved: unknown[] = []
    const { stream } = start({ persist: { load: () => null, save: (cursor) => saved.push(cursor) } })
    stream.on('message', () => stream.reconnect())
    const first = await server.stream()
    first.send(...hello({}, 'e0'))
    first.send(...message('e1'))
    const second = await server.stream()
    second.send(...hello({ resumed: true, requested: 'e0' }, 'e0'))
    second.send(...message('e1'))
    await moved(stream, 'e1')
    expect(saved).toEqual(['e0', 'e1'])
    expect(stream.state).toMatchObject({ state: 'connected', stale: false })
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

  test('are called before the cursor moves, so that a page left in between loses nothing', async () => {
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

  test('that are missing for data that is not JSON cost one warning', async () => {
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
