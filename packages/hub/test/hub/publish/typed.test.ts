import { createHub, type EventsIn, type Hub, type TypedHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import * as v from 'valibot'
import { expect, expectTypeOf, onTestFinished, test } from 'vitest'
import { serveHub } from '../../support/http-server.ts'

interface Channels {
  'orders/:id': { shipped: { at: number }; cancelled: { reason: string } }
  'shops/:shop/orders/:id': { paid: { cents: number } }
  news: { message: { title: string }; flash: string }
}

const schemas = {
  'orders/:id': {
    shipped: v.object({ at: v.number() }),
    cancelled: v.object({ reason: v.pipe(v.string(), v.minLength(3)) }),
  },
  news: { message: v.object({ title: v.string() }) },
}

async function opened<Opened extends Pick<Hub, 'close'>>(opening: Promise<Opened>): Promise<Opened> {
  const hub = await opening
  onTestFinished(() => hub.close())
  return hub
}

test('with a declaration, only its channels, types and data compile', async () => {
  const hub = await opened(createHub<Channels>({ log: memoryLog() }))
  const id = '42'
  await hub.publish('orders/42', { type: 'shipped', data: { at: 1 } })
  await hub.publish(`orders/${id}`, { type: 'cancelled', data: { reason: 'late' }, live: true })
  await hub.publish(`shops/7/orders/${id}`, { type: 'paid', data: { cents: 5 } })
  await hub.publish('news', { data: { title: 'of the type message' } })
  await hub.publish('news', { type: 'flash', text: 'text where the data is a string' })
  await hub.publishBatch([
    { channel: 'orders/1', type: 'shipped', data: { at: 1 } },
    { channel: 'news', data: { title: 'two' } },
  ])
  // What follows must not compile. It is not run: without schemas, nothing is checked then.
  const mistakes = () => [
    // @ts-expect-error a channel that is not declared
    hub.publish('order/42', { type: 'shipped', data: { at: 1 } }),
    // @ts-expect-error a misspelt type
    hub.publish('orders/42', { type: 'shiped', data: { at: 1 } }),
    // @ts-expect-error data of another type
    hub.publish('orders/42', { type: 'shipped', data: { reason: 'late' } }),
    // @ts-expect-error data that lacks a field
    hub.publish('orders/42', { type: 'shipped', data: {} }),
    // @ts-expect-error no type, where none is called message
    hub.publish('orders/42', { data: { at: 1 } }),
    // @ts-expect-error text, where the data is no string
    hub.publish('orders/42', { type: 'shipped', text: 'at' }),
    // @ts-expect-error an event of another channel in a batch
    hub.publishBatch([{ channel: 'news', type: 'shipped', data: { at: 1 } }]),
  ]
  expect(mistakes).toBeTypeOf('function')
})

test('a typed hub goes wherever a hub goes', async () => {
  const hub = await opened(createHub<Channels>({ log: memoryLog() }))
  expectTypeOf(hub).toExtend<Hub>()
  expect(nodeHandler(hub)).toBeTypeOf('function')
})

test('a reader of one channel has the types of its events', () => {
  expectTypeOf<EventsIn<Channels, 'orders/42'>>().toEqualTypeOf<Channels['orders/:id']>()
  expectTypeOf<EventsIn<Channels, 'news'>>().toEqualTypeOf<Channels['news']>()
  expectTypeOf<EventsIn<Channels, 'other'>>().toEqualTypeOf<never>()
})

test('schemas make the types, and what does not fit is rejected before anything is published', async () => {
  const hub = await opened(createHub({ log: memoryLog(), schemas }))
  expectTypeOf(hub).toEqualTypeOf<
    TypedHub<{
      'orders/:id': { shipped: { at: number }; cancelled: { reason: string } }
      news: { message: { title: string } }
    }>
  >()
  const { id } = await hub.publish('orders/42', { type: 'shipped', data: { at: 1 } })
  // As from code that is not typed.
  const untyped = hub as unknown as Hub
  await expect(untyped.publish('orders/42', { type: 'shipped', data: { at: 'noon' } })).rejects.toMatchObject({
    code: 'invalid-data',
    message: expect.stringMatching(
      /shipped in orders\/42 does not fit its schema\. at: Invalid type.*Nothing was published/s,
    ),
  })
  await expect(untyped.publish('orders/42', { type: 'shiped', data: { at: 1 } })).rejects.toMatchObject({
    code: 'invalid-type',
    message: 'orders/42 has no events of the type "shiped". Its schemas have: shipped, cancelled.',
  })
  const batch = [
    { channel: 'orders/1', type: 'shipped', data: { at: 1 } },
    { channel: 'orders/1', type: 'cancelled', data: { reason: 'no' } },
  ]
  await expect(untyped.publishBatch(batch)).rejects.toMatchObject({ code: 'invalid-data' })
  await untyped.publish('elsewhere', { type: 'anything', data: 1 })
  expect(await hub.admin.window('orders/42')).toMatchObject({ events: 1, newest: id })
  expect(await hub.admin.window('orders/1')).toMatchObject({ events: 0 })
})

test('a body that is JSON is held against the schema as its value, and text as text', async () => {
  const { hub, url } = await serveHub({ schemas })
  const post = async (body: string, type: string) =>
    (await fetch(url('/publish/news'), { method: 'POST', body, headers: { 'Content-Type': type } })).status
  expect(await post('{"title":"over HTTP"}', 'application/json')).toBe(201)
  expect(await post('{"title":"over HTTP"}', 'text/plain')).toBe(400)
  expect(await post('no JSON', 'application/json')).toBe(400)
  const text = '{"title":"as text"}'
  await expect(hub.publish('news', { text })).rejects.toMatchObject({ code: 'invalid-data' })
})

test('a schema that is asked in vain for long holds up its own publish alone', async () => {
  let answer: (result: { value: unknown }) => void = () => undefined
  const slow = {
    '~standard': { version: 1, validate: () => new Promise<{ value: unknown }>((resolve) => (answer = resolve)) },
  } as const
  const hub = (await opened(createHub({ log: memoryLog(), schemas: { slow: { message: slow } } }))) as unknown as Hub
  const waiting = hub.publish('slow', { data: 1 })
  await hub.publish('fast', { data: 2 })
  expect(await hub.admin.window('slow')).toMatchObject({ events: 0 })
  answer({ value: 1 })
  expect(await waiting).toMatchObject({ channel: 'slow' })
})
