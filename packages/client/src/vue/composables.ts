import type { EventsOf, Schemas } from '@rejoin/protocol'
import {
  type ComputedRef,
  computed,
  getCurrentInstance,
  type MaybeRefOrGetter,
  onActivated,
  onDeactivated,
  onMounted,
  onScopeDispose,
  type ShallowRef,
  shallowRef,
  toValue,
  watch,
} from 'vue'
import { watchUser } from '../bindings/asked-user.ts'
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

/** A view as refs, one for each of its fields. */
export type ViewRefs<View extends ConnectionView> = {
  readonly [Name in Exclude<keyof View, 'reconnect'>]: ComputedRef<View[Name]>
} & Pick<ConnectionView, 'reconnect'>

/**
 * The events of a stream: the last ones as a list (`events`), or the value that `reduce` computes from all of them
 * (`value`). Refs change at most once per frame, however many events arrive; `reduce` gets every event.
 *
 * Components with the same URL and the same user share one stream. For another URL, or for another user, it starts anew.
 * Give `identity` where the options do not show who reads.
 *
 * @param source - a URL, a stream that you have opened with `connect`, or `null` for none; a ref or a getter, if it
 * changes
 * @param options - a ref or a getter, if they change
 */
export function useEventStream<Given extends Schemas, Value>(
  source: MaybeRefOrGetter<Source>,
  options: MaybeRefOrGetter<
    EventOptions<EventsOf<Given>, Value | undefined> & Reduction<EventsOf<Given>, Value> & { schemas: Given }
  >,
): ViewRefs<ValueView<Value>>
export function useEventStream<Given extends Schemas>(
  source: MaybeRefOrGetter<Source>,
  options: MaybeRefOrGetter<EventOptions<EventsOf<Given>> & { schemas: Given }>,
): ViewRefs<EventsView<EventsOf<Given>>>
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

/** The whole view as one ref. */
export function useView(
  source: MaybeRefOrGetter<Source>,
  options: MaybeRefOrGetter<StoreOptions>,
  reads: boolean,
): ShallowRef<StoreView> {
  let store = newStore()
  let off: Off | undefined
  const view = shallowRef(store.getServerSnapshot())

  watch(
    () => keyOf(toValue(source), toValue(options)),
    () => {
      const isFollowing = off
      stop()
      store = newStore()
      if (isFollowing) follow()
      else show()
    },
    // At once, so that nothing more of the old stream is shown.
    { flush: 'sync' },
  )
  watch(
    () => toValue(options),
    (next) => store.update(next),
  )
  // A component follows the stream when it is mounted: a server mounts nothing, so it opens no connection. While
  // `<KeepAlive>` only keeps it, it must not hold the stream of a user who has left.
  if (getCurrentInstance()) {
    onMounted(follow)
    onActivated(follow)
    onDeactivated(stop)
  } else follow()
  onScopeDispose(stop)
  return view

  function newStore(): StreamStore {
    return createStreamStore(toValue(source), toValue(options), reads, watchUser)
  }

  function follow(): void {
    off ??= store.subscribe(show)
    show()
  }

  function stop(): void {
    off?.()
    off = undefined
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
