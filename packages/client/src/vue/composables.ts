import {
  type ComputedRef,
  computed,
  getCurrentInstance,
  type MaybeRefOrGetter,
  onMounted,
  onScopeDispose,
  type ShallowRef,
  shallowRef,
  toValue,
  watch,
} from 'vue'
import { keyOf, type Source } from '../bindings/shared-streams.ts'
import {
  type ConnectionView,
  createStreamStore,
  type EventOptions,
  type EventsView,
  type Reduction,
  type StoreOptions,
  type StoreView,
  type StreamStore,
  type ValueView,
} from '../bindings/stream-store.ts'
import type { Off } from '../handler-set.ts'
import type { ConnectOptions } from '../options.ts'

/** What is shown, a ref for each part of it. */
export type ViewRefs<View extends ConnectionView> = {
  readonly [Name in Exclude<keyof View, 'reconnect'>]: ComputedRef<View[Name]>
} & Pick<ConnectionView, 'reconnect'>

/**
 * The events of a stream: the last of them in a list (`events`), or what `reduce` makes of all of them (`value`). Refs
 * change at most once per frame, however many events arrive, and `reduce` gets every one of them.
 *
 * Components with the same URL share one stream. Another URL is another stream, and starts anew; another token goes on with
 * the same stream.
 *
 * @param source - a URL, a stream that you have opened with `connect`, or `null` for none; as a ref or a getter, if it changes
 * @param options - as a ref or a getter, if they change
 */
export function useEventStream<Events extends object, Value>(
  source: MaybeRefOrGetter<Source>,
  options: MaybeRefOrGetter<EventOptions<Events, Value | undefined> & Reduction<Events, Value>>,
): ViewRefs<ValueView<Value>>
export function useEventStream<Events extends object = Record<string, unknown>>(
  source: MaybeRefOrGetter<Source>,
  options?: MaybeRefOrGetter<EventOptions<Events>>,
): ViewRefs<EventsView<Events>>
export function useEventStream(
  source: MaybeRefOrGetter<Source>,
  options: MaybeRefOrGetter<StoreOptions> = {},
): ViewRefs<ConnectionView> {
  return refsOf(useView(source, options, true))
}

/** The connection of a stream, without its events. */
export function useConnection(
  source: MaybeRefOrGetter<Source>,
  options: MaybeRefOrGetter<ConnectOptions> = {},
): ViewRefs<ConnectionView> {
  return refsOf(useView(source, options, false))
}

/** What is shown, as one ref. */
export function useView(
  source: MaybeRefOrGetter<Source>,
  options: MaybeRefOrGetter<StoreOptions>,
  reads: boolean,
): ShallowRef<StoreView> {
  let store = newStore()
  let off: Off | undefined
  const view = shallowRef(store.getServerSnapshot())

  watch(
    () => keyOf(toValue(source)),
    () => {
      store = newStore()
      if (off) follow()
      else show()
    },
    // At once: nobody wants more of the other stream.
    { flush: 'sync' },
  )
  watch(
    () => toValue(options),
    (next) => store.update(next),
  )
  // A server mounts nothing, and opens no connection. Outside of components there is nothing to wait for.
  if (getCurrentInstance()) onMounted(follow)
  else follow()
  onScopeDispose(() => off?.())
  return view

  function newStore(): StreamStore {
    return createStreamStore(toValue(source), toValue(options), reads)
  }

  function follow(): void {
    off?.()
    off = store.subscribe(show)
    show()
  }

  function show(): void {
    view.value = store.getSnapshot()
  }
}

function refsOf(view: ShallowRef<StoreView>): ViewRefs<ConnectionView> {
  const refs: Record<string, unknown> = { reconnect: () => view.value.reconnect() }
  for (const name in view.value) refs[name] ??= computed(() => view.value[name as keyof StoreView])
  return refs as unknown as ViewRefs<ConnectionView>
}
