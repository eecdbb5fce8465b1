import type { EventsOf, Schemas } from '@rejoin/protocol'
import { useEffect, useState, useSyncExternalStore } from 'react'
import { watchUser } from '../bindings/asked-user.ts'
import { keyOf, type Source } from '../bindings/shared-streams.ts'
import {
  type ConnectionView,
  createStreamStore,
  type EventOptions,
  type EventsView,
  type Reduction,
  type StoreOptions,
  type ValueView,
} from '../bindings/stream-store.ts'
import type { ConnectOptions } from '../options.ts'

/**
 * The events of a stream: the last ones as a list (`events`), or the value that `reduce` computes from all of them
 * (`value`). The component renders at most once per frame, however many events arrive; `reduce` gets every event.
 *
 * Components with the same URL and the same user share one stream. For another URL, or for another user, the hook starts
 * anew. Give `identity` where the options do not show who reads.
 *
 * @param source - a URL, a stream that you have opened with `connect`, or `null` for none
 */
export function useEventStream<Given extends Schemas, Value>(
  source: Source,
  options: EventOptions<EventsOf<Given>, Value | undefined> & Reduction<EventsOf<Given>, Value> & { schemas: Given },
): ValueView<Value>
export function useEventStream<Given extends Schemas>(
  source: Source,
  options: EventOptions<EventsOf<Given>> & { schemas: Given },
): EventsView<EventsOf<Given>>
export function useEventStream<Events extends object, Value>(
  source: Source,
  options: EventOptions<Events, Value | undefined> & Reduction<Events, Value>,
): ValueView<Value>
export function useEventStream<Events extends object = Record<string, unknown>>(
  source: Source,
  options?: EventOptions<Events>,
): EventsView<Events>
export function useEventStream(source: Source, options: StoreOptions = {}): ConnectionView {
  return useStore(source, options, true)
}

/**
 * The connection of a stream, without its events. The component renders when the state changes, and every second of a
 * countdown.
 */
export function useConnection(source: Source, options: ConnectOptions = {}): ConnectionView {
  return useStore(source, options, false)
}

function useStore(source: Source, options: StoreOptions, reads: boolean): ConnectionView {
  const key = keyOf(source, options)
  const create = () => ({ key, store: createStreamStore(source, options, reads, watchUser) })
  let [held, hold] = useState(create)
  // State and not a ref: a rendering that React discards must not replace the store of the component on the screen.
  if (held.key !== key) {
    held = create()
    hold(held)
  }
  const { store } = held
  useEffect(() => store.update(options))
  return useSyncExternalStore(store.subscribe, store.getSnapshot, store.getServerSnapshot)
}
