import { useEventStream as useReactStream } from '@rejoin/client/react'
import { useEventStream as useVueStream } from '@rejoin/client/vue'
import { createTestHub } from '@rejoin/hub/testing'
import type { EventsIn } from '@rejoin/protocol'
import { expect, test } from 'vitest'
import { connect } from '../src/index.ts'

interface Channels {
  'orders/:id': { shipped: { at: number }; cancelled: { reason: string } }
}
type Events = EventsIn<Channels, 'orders/42'>
const url = '/events/orders/42'

// What is wrong here must not compile. Nothing of it runs: the compiler is the test, with `npm run build`.

test('a misspelt type, and data that is not there, do not compile in handlers', () => {
  const mistakes = () => {
    const stream = connect<Events>(url)
    // @ts-expect-error a misspelt type
    stream.on('shiped', () => undefined)
    // @ts-expect-error data of another type
    stream.on('shipped', ({ data }) => data.reason)
    // @ts-expect-error not before the type is known
    stream.on('*', ({ data }) => data.at)
    stream.on('*', (event) => event.type === 'shipped' && event.data.at.toFixed())
  }
  expect(mistakes).toBeTypeOf('function')
})

test('a misspelt type, and data that is not there, do not compile in the bindings', () => {
  const mistakes = () => {
    useReactStream<Events, number>(url, {
      initial: 0,
      // @ts-expect-error a misspelt type, which no event has
      reduce: (value, event) => (event.type === 'shiped' ? 1 : value),
    })
    useVueStream<Events, number>(url, {
      initial: 0,
      // @ts-expect-error data of another type
      reduce: (value, event) => (event.type === 'shipped' ? event.data.reason.length : value),
    })
    // @ts-expect-error the value is a number
    useReactStream<Events, number>(url, { initial: '', reduce: (value) => value })
    const { events } = useReactStream<Events>(url)
    // @ts-expect-error not before the type is known
    return events.map(({ data }) => data.reason)
  }
  expect(mistakes).toBeTypeOf('function')
})

test('a misspelt type, and data that is not there, do not compile in a test hub', () => {
  const mistakes = async () => {
    const hub = await createTestHub<Channels>()
    await hub.publish('orders/42', { type: 'shipped', data: { at: 1 } })
    // @ts-expect-error a channel that is not declared
    await hub.publish('order/42', { type: 'shipped', data: { at: 1 } })
    // @ts-expect-error a misspelt type
    await hub.publish('orders/42', { type: 'shiped', data: { at: 1 } })
    // @ts-expect-error data of another type
    await hub.publish('orders/42', { type: 'shipped', data: { reason: 'late' } })
  }
  expect(mistakes).toBeTypeOf('function')
})
