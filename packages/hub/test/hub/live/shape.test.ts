import { describe, expect, test } from 'vitest'
import { serveHub } from '../../support/http-server.ts'

describe('a reader that asks to be shown more (§4.15)', () => {
  test('with show=channel gets the channel as a field of each event, live and replayed', async () => {
    const { hub, open } = await serveHub()
    const { id } = await hub.publish('orders/1', { data: 1 })
    await hub.publish('orders/2', { type: 'shipped', data: 2 })
    const reader = await open('/events/orders/*?show=channel', { 'Last-Event-ID': id })
    await reader.waitFor((events) => events.length === 2)
    await hub.publish('orders/3', { data: 3 })
    await reader.waitFor((events) => events.length === 3)
    expect(reader.text).toContain('channel: orders/2\nid: ')
    expect(reader.text).toContain('channel: orders/3\nid: ')
    expect(reader.events.map(({ data }) => data).slice(1)).toEqual(['2', '3'])
  })

  test('with show=envelope gets the id and the channel inside the data', async () => {
    const { hub, open } = await serveHub()
    const start = await hub.publish('a/0', { data: 0 })
    const json = await hub.publish('a/1', { type: 'shipped', data: { at: 7 } })
    const text = await hub.publish('a/2', { text: 'two\nlines' })
    const reader = await open('/events/a/*?show=envelope', { 'Last-Event-ID': start.id })
    await reader.waitFor((events) => events.length === 3)
    const live = await hub.publish('a/3', { data: 3 })
    await reader.waitFor((events) => events.length === 4)
    expect(reader.events.slice(1).map(({ id, type, data }) => [id, type, JSON.parse(data)])).toEqual([
      [json.id, 'shipped', { id: json.id, channel: 'a/1', data: { at: 7 } }],
      [text.id, 'message', { id: text.id, channel: 'a/2', text: 'two\nlines' }],
      [live.id, 'message', { id: live.id, channel: 'a/3', data: 3 }],
    ])
  })

  test('does not change what others get of the same events in the same turn', async () => {
    const { hub, open } = await serveHub()
    const readers = await Promise.all(
      ['', '?show=channel', '?show=envelope', '?show=nonsense'].map((query) => open(`/events/a/1${query}`)),
    )
    await Promise.all(readers.map((reader) => reader.waitFor((events) => events.length === 1)))
    await hub.publishBatch([
      { channel: 'a/1', data: 1 },
      { channel: 'a/1', data: 2 },
    ])
    await Promise.all(readers.map((reader) => reader.waitFor((events) => events.length === 3)))
    expect(readers.map(({ events }) => events.slice(1).map(({ data }) => data))).toEqual([
      ['1', '2'],
      ['1', '2'],
      [expect.stringContaining('"data":1}'), expect.stringContaining('"data":2}')],
      ['1', '2'],
    ])
    expect(readers.map(({ text }) => text.includes('channel: a/1'))).toEqual([false, true, false, false])
  })

  test('is shown the channel by polls and inside the program, too', async () => {
    const { hub, url } = await serveHub()
    const { id } = await hub.publish('a/1', { data: 1 })
    await hub.publish('a/2', { data: 2 })
    const poll = await fetch(url(`/poll/a/*?show=channel&cursor=${id}`))
    const { events } = (await poll.json()) as { events: unknown[] }
    expect(events.at(-1)).toMatchObject({ channel: 'a/2', data: '2' })
    for await (const frame of hub.stream('a/*', { shape: 'channel', from: id })) {
      if (frame.type === 'hello') continue
      expect(frame).toMatchObject({ channel: 'a/2', data: '2' })
      break
    }
  })
})
