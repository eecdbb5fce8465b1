import { isAfter, latest, origin } from '@rejoin/protocol'
import type { LogEvent, WindowOptions } from '../contract.ts'
import { recordKey } from './keys.ts'
import { costOf, openRecord, type StoredPlace } from './record.ts'
import type { ChannelState } from './state.ts'
import type { Entry, Store } from './store.ts'

export interface Trimming {
  /** That of the channel. */
  readonly window: Required<WindowOptions>
  readonly now: number
  /** How many events to let go of at most; the rest goes next time. */
  readonly atMost: number
}

/**
 * Lets go of a channel's oldest events until it is within its window. Changes `state` alone; gives the keys of the records
 * of which nothing is left, which are to be removed with the change, and how many of `fresh` are not worth storing.
 *
 * `fresh` are events that are counted in `state`, but not in the store yet.
 */
export function trimChannel(
  store: Store,
  state: ChannelState,
  fresh: readonly LogEvent[],
  { window, now, atMost }: Trimming,
): { emptied: Buffer[]; stale: number } {
  const emptied: Buffer[] = []
  const tooOld = now - window.maxAgeMs
  let left = atMost

  const isOver = () =>
    state.events > 0 && (state.events > window.maxEvents || state.bytes > window.maxBytes || state.oldestAt < tooOld)

  /** Whether it had to go. */
  function letGo(place: Pick<StoredPlace, 'position' | 'at' | 'type' | 'length'>): boolean {
    state.oldestAt = place.at
    if (left === 0 || !isOver()) return false
    left -= 1
    state.events -= 1
    state.bytes -= costOf(place)
    state.trimmedThrough = place.position
    if (state.events === 0) state.emptySince = now
    return true
  }

  if (!isOver()) return { emptied, stale: 0 }
  let damaged = false
  for (const { key, value } of recordsOf(store, state)) {
    const record = openRecord(key, value)
    if (!record) {
      emptied.push(key)
      damaged = true
      continue
    }
    if (damaged) {
      damaged = false
      state.trimmedThrough = latest(state.trimmedThrough, record.previous)
      recount(store, state, fresh, now)
    }
    for (const place of record.places) {
      if (isAfter(place.position, state.trimmedThrough) && !letGo(place)) return { emptied, stale: 0 }
    }
    emptied.push(key)
  }
  if (damaged) {
    state.trimmedThrough = latest(state.trimmedThrough, fresh[0]?.previous ?? state.newest)
    recount(store, state, fresh, now)
  }
  const kept = fresh.findIndex((event) => !letGo({ ...event, length: event.data.length }))
  return { emptied, stale: kept === -1 ? fresh.length : kept }
}

export function recordsOf(store: Store, { number }: ChannelState): Iterable<Entry> {
  return store.range(recordKey(number, origin), recordKey(number + 1, origin))
}

/** Counts anew what a channel holds: a damaged record took with it how much it had been counted for. */
function recount(store: Store, state: ChannelState, fresh: readonly LogEvent[], now: number): void {
  const costs = fresh.map((event) => costOf({ type: event.type, length: event.data.length }))
  for (const { key, value } of recordsOf(store, state)) {
    for (const place of openRecord(key, value)?.places ?? []) {
      if (isAfter(place.position, state.trimmedThrough)) costs.push(costOf(place))
    }
  }
  state.events = costs.length
  state.bytes = costs.reduce((sum, cost) => sum + cost, 0)
  if (state.events === 0) state.emptySince = now
}
