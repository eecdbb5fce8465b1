import type { PublisherOptions } from '@rejoin/client/publisher'
import type { ConnectionStatusProps, EventOptions } from '@rejoin/client/react'
import { useEventStream as useReactStream } from '@rejoin/client/react'
import type { ReduxStreamOptions } from '@rejoin/client/redux'
import { useEventStream as useVueStream } from '@rejoin/client/vue'
import { createTestHub } from '@rejoin/hub/testing'
import type { EventsIn, Schema } from '@rejoin/protocol'
import { expect, expectTypeOf, test } from 'vitest'
import { type ConnectOptions, connect } from '../src/index.ts'

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

test('the bindings take the types of events from schemas, as connect does', () => {
  const schemas = {} as { shipped: Schema<{ at: number }>; cancelled: Schema<{ reason: string }> }
  const typed = () => {
    const fromReact = useReactStream(url, { schemas, onEvent: ({ type }) => type })
    const fromVue = useVueStream(url, { schemas })
    const [event] = fromReact.events
    expectTypeOf(fromVue.events.value).toEqualTypeOf(fromReact.events)
    if (event?.type === 'shipped') expectTypeOf(event.data).toEqualTypeOf<{ at: number }>()
    const sum = (value: number, at: number) => value + at
    expectTypeOf(
      useReactStream(url, {
        schemas,
        initial: 0,
        reduce: (value, event) => (event.type === 'shipped' ? sum(value, event.data.at) : value),
      }).value,
    ).toEqualTypeOf<number>()
    useVueStream(url, {
      schemas,
      initial: 0,
      // @ts-expect-error data of another type
      reduce: (value, event) => (event.type === 'shipped' ? event.data.reason.length : value),
    })
  }
  expect(typed).toBeTypeOf('function')
})

test('an option that is undefined is an option that is left out, under exactOptionalPropertyTypes too', () => {
  expectTypeOf<OptionsThatRejectUndefined<ConnectOptions>>().toBeNever()
  expectTypeOf<OptionsThatRejectUndefined<EventOptions<Events>>>().toBeNever()
  expectTypeOf<OptionsThatRejectUndefined<ConnectionStatusProps>>().toBeNever()
  expectTypeOf<OptionsThatRejectUndefined<ReduxStreamOptions<Events>>>().toBeNever()
  expectTypeOf<OptionsThatRejectUndefined<PublisherOptions>>().toBeNever()
})

type OptionsThatRejectUndefined<Options> = {
  [Name in keyof Options]-?: undefined extends Required<Options>[Name]
    ? never
    : Record<never, never> extends Pick<Options, Name>
      ? Name
      : never
}[keyof Options]
