import { isAfter, latest, origin, type Position } from '@rejoin/protocol'
import type { LogEvent, PageLimit } from '../contract.ts'
import { recordKey } from './keys.ts'
import { costOf, openRecord, type StoredPlace } from './record.ts'
import type { ChannelState } from './state.ts'
import type { Entry, Store } from './store.ts'
import { recordsOf } from './trim.ts'

/** What was read of one channel; or a hole, with the place behind which the channel is whole again. */
export type ChannelRead = ChannelEvents | Hole

export interface ChannelEvents {
  readonly events: LogEvent[]
  /** Whether there may be more behind the last one. */
  readonly cut: boolean
}

export interface Hole {
  readonly wholeAfter: Position
}

/**
 * The events of one channel after `after`, not past `through`. Every record names the event before it, so one that is
 * damaged, or missing from under a damaged page, shows: the link of the next does not fit, or the newest event is not met.
 */
export function readChannel(
  store: Store,
  channel: string,
  state: ChannelState,
  { after, through, limit }: { after: Position; through: Position; limit: PageLimit },
): ChannelRead {
  const events: LogEvent[] = []
  // Everything up to here is in the reader's hands, in `events`, or known to be trimmed.
  let seen = latest(after, state.trimmedThrough)
  if (!isAfter(state.newest, seen)) return { events, cut: false }
  let bytes = 0
  let damaged = false

  for (const { key, value } of recordsFrom(store, state, seen)) {
    const record = openRecord(key, value)
    if (!record) {
      damaged = true
      continue
    }
    if (isAfter(record.previous, seen)) return events.length > 0 ? { events, cut: true } : holeAfter(store, state, seen)
    damaged = false
    const from = indexAfter(record.places, seen)
    let to = from
    let full = false
    for (; to < record.places.length && !full; to += 1) {
      const place = record.places[to] as StoredPlace
      if (isAfter(place.position, through)) break
      bytes += costOf(place)
      full = events.length + to - from + 1 >= limit.events || bytes >= limit.bytes
    }
    for (const event of record.events(channel, from, to)) events.push(event)
    if (full) return { events, cut: true }
    if (to < record.places.length) return { events, cut: false }
    seen = latest(seen, (record.places.at(-1) as StoredPlace).position)
  }
  const isWhole = !isAfter(state.newest, seen) || (!damaged && isAfter(state.newest, through))
  if (isWhole) return { events, cut: false }
  return events.length > 0 ? { events, cut: true } : { wholeAfter: state.newest }
}

/** The records that hold anything after a place. The one that starts at or before it may go on behind it. */
function recordsFrom(store: Store, { number }: ChannelState, after: Position): Iterable<Entry> {
  const first = recordKey(number, origin)
  return store.range(store.lastKeyUpTo(recordKey(number, after), first) ?? first, recordKey(number + 1, origin))
}

function indexAfter(places: readonly StoredPlace[], position: Position): number {
  // Most reads start before a record or go on at its end.
  if (isAfter((places[0] as StoredPlace).position, position)) return 0
  const index = places.findIndex((place) => isAfter(place.position, position))
  return index === -1 ? places.length : index
}

/** There is a hole after a place; where is the end of the last one? Behind it the channel is whole. */
function holeAfter(store: Store, state: ChannelState, after: Position): Hole {
  let wholeAfter = after
  let seen = after
  for (const { key, value } of recordsOf(store, state)) {
    const record = openRecord(key, value)
    if (!record) continue
    if (isAfter(record.previous, seen)) wholeAfter = record.previous
    seen = latest(seen, (record.places.at(-1) as StoredPlace).position)
  }
  return { wholeAfter: isAfter(state.newest, seen) ? state.newest : wholeAfter }
}
