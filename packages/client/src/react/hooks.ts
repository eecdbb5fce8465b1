import { useEffect, useState, useSyncExternalStore } from 'react'
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
 * The events of a stream: the last of them in a list (`events`), or what `reduce` makes of all of them (`value`). The
 * component renders at most once per frame, however many events arrive, and `reduce` gets every one of them.
 *
 * Components with the same URL share one stream. Another URL is another stream, and starts anew; another token goes on with
 * the same stream.
 *
 * @param source - a URL, a stream that you have opened with `connect`, or `null` for none
 */
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
 * The connection of a stream, without its events: the component renders when the state changes, and every second of a
 * countdown.
 */
export function useConnection(source: Source, options: ConnectOptions = {}): ConnectionView {
  return useStore(source, options, false)
}

function useStore(source: Source, options: StoreOptions, reads: boolean): ConnectionView {
  const key = keyOf(source)
  const create = () => ({ key, store: createStreamStore(source, options, reads) })
  let [held, hold] = useState(create)
  // In a state, not in a ref: a rendering that React gives up must not take the store of the one that is on the screen.
  if (held.key !== key) {
    held = create()
    hold(held)
  }
  const { store } = held
  useEffect(() => store.update(options))
  return useSyncExternalStore(store.subscribe, store.getSnapshot, store.getServerSnapshot)
}
