import { describe, expect, test } from 'vitest'
import { hello, message } from './support/scripted-server.ts'
import { clock, moved, retried, server, start, useStage } from './support/stage.ts'

useStage()

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
    const { events } = await cutAfterOneEvent()
    const second = await server.stream()
    for (const id of ['e1', 'e2']) second.send(...message(id))
    expect(await events.until(2)).toEqual(['e1', 'e2'])
  })

  test('a server that greets with the last event, whether it is known or not, is alive and no hub', async () => {
    const { stream } = await cutAfterOneEvent()
    const again = new Promise((resolve) => stream.onDuplicate(resolve))
    const second = await server.stream()
    second.send(...message('e1'))
    await again
    expect(stream.state).toMatchObject({ state: 'connected', stale: false, cursor: 'e1' })
    clock.advance(3_600_000)
    expect(stream.state.state).toBe('connected')
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

  test('a block with an id and no data moves the cursor too (§6)', async () => {
    const { stream } = start()
    const first = await server.stream()
    first.send(...hello({}, 'e0'))
    first.send('id: e5')
    await moved(stream, 'e5')
  })

  test('a comment does not erase the cursor (§6)', async () => {
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

  test('a proxy that strips the header is noticed, and the cursor goes into the URL (§4.4)', async () => {
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

  test('a cursor that never reaches the hub is reported as a gap', async () => {
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

/** A stream of a server that does not greet, on its way back. */
async function cutAfterOneEvent() {
  const { stream, events } = start()
  const first = await server.stream()
  first.send(...message('e1'))
  await events.until(1)
  first.cut()
  await retried(stream)
  return { stream, events }
}
