import { describe, expect, test } from 'vitest'
import { publish } from '../../support/publishing.ts'
import { openHub, type Recorder } from '../../support/recorder.ts'

const many = Array.from({ length: 50 }, (_, index) => index)
const long = 'x'.repeat(200)

describe('readers that return together', () => {
  test('with the same cursor each get everything once, in order', async () => {
    const { hub, environment, connect } = await openHub()
    const [cursor = ''] = await publish(hub, 'a', ...many)
    const readers = many.map(() => connect('a', { cursor }))
    await environment.settle()
    for (const reader of readers) expect(reader.data).toEqual(many.slice(1).map(String))
  })

  test('are handed the same bytes, and not a copy each', async () => {
    const { hub, environment, connect } = await openHub()
    const { id: cursor } = await hub.publish('a', { data: 0 })
    for (const data of many) await hub.publish('a', { data: `${data} ${long}` })
    const readers = [connect('a', { cursor }), connect('a', { cursor }), connect('a', { cursor })]
    await environment.settle()
    const [, one, other] = readers.map(({ buffers }) => buffers.at(-1)?.buffer)
    expect(one).toBe(other)
    expect(new Set(readers.map(({ data }) => data.join())).size).toBe(1)
  })

  test('and filter by different types each get the types they asked for', async () => {
    const { hub, environment, connect } = await openHub()
    const { id: cursor } = await hub.publish('a', { data: 'first' })
    for (const data of many) await hub.publish('a', { type: data % 2 ? 'odd' : 'even', data: `${data} ${long}` })
    const all = [connect('a', { cursor }), connect('a', { cursor })]
    const odd = [connect('a', { cursor, types: ['odd'] }), connect('a', { cursor, types: ['odd'] })]
    await environment.settle()
    for (const reader of all) expect(numbersOf(reader)).toEqual(many)
    for (const reader of odd) expect(numbersOf(reader)).toEqual(many.filter((data) => data % 2))
  })

  test('get an event that is published between two of them, too', async () => {
    const { hub, environment, connect } = await openHub()
    const { id: cursor } = await hub.publish('a', { data: 'first' })
    for (const data of many) await hub.publish('a', { data: `${data} ${long}` })
    const before = [connect('a', { cursor }), connect('a', { cursor })]
    await hub.publish('a', { data: `50 ${long}` })
    const after = [connect('a', { cursor }), connect('a', { cursor })]
    await environment.settle()
    for (const reader of [...before, ...after]) expect(numbersOf(reader)).toEqual([...many, 50])
  })

  test('get nothing of what was invalidated between two of them', async () => {
    const { hub, environment, connect } = await openHub()
    const { id: cursor } = await hub.publish('a', { data: 'first' })
    for (const data of many) await hub.publish('a', { data: `${data} ${long}` })
    connect('a', { cursor })
    connect('a', { cursor })
    await hub.invalidate('a')
    const late = [connect('a', { cursor }), connect('a', { cursor })]
    await environment.settle()
    for (const reader of late) {
      expect(reader.data).toEqual([])
      expect(reader.events.map(({ type }) => type)).toContain('sync-required')
    }
  })

  test('each get everything although one of them does not read, which catches up when it reads', async () => {
    const { hub, environment, connect } = await openHub()
    const { id: cursor } = await hub.publish('a', { data: 'first' })
    for (const data of many) await hub.publish('a', { data: `${data} ${long}` })
    const [, slow, quick] = [
      connect('a', { cursor }),
      connect('a', { cursor, fullAfter: 100 }),
      connect('a', { cursor }),
    ]
    await environment.settle()
    await hub.publish('a', { data: `50 ${long}` })
    await environment.settle()
    expect(numbersOf(quick)).toEqual([...many, 50])
    expect(numbersOf(slow)).toEqual(many)
    slow.drain()
    await environment.settle()
    expect(numbersOf(slow)).toEqual([...many, 50])
  })
})

function numbersOf(reader: Recorder): number[] {
  return reader.data.map((data) => Number.parseInt(JSON.parse(data), 10))
}
