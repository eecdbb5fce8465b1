import { isAfter, latest, origin, type Position } from '@rejoin/protocol'
import type { BackPage, LogEvent, PageLimit, TypedPosition } from '../../contract.ts'
import { lossAfter, type PageRange, type SelectorRead } from '../../selector-read.ts'
import { recordsOf } from '../commit/trim.ts'
import type { Entry, Store } from '../files/store.ts'
import { recordKey } from '../format/keys.ts'
import { isMark, type Marks } from '../format/marks.ts'
import { openRecord, type StoredStamp } from '../format/record.ts'
import type { ChannelState, LogState } from '../format/state.ts'

export interface ChannelSource {
  readonly store: Store
  readonly marks: Marks
}

export interface PageSource extends ChannelSource {
  readonly log: LogState
  /** The stored state of a channel, without the events that have fallen out of its window by now. */
  stateOf(channel: string): ChannelState
}

/** The events that were read of one channel; or a gap, with the position after which the channel is whole again. */
export type ChannelRead = ChannelEvents | ChannelGap

export interface ChannelEvents {
  readonly events: LogEvent[]
  /** Whether there may be more events after the last one. */
  readonly cut: boolean
}

export interface ChannelGap {
  readonly wholeAfter: Position
}

/**
 * The events of one channel after `after`, not past `through`. Every record names the event before it. So a damaged or missing
 * record shows: the link of the next record does not fit, or the read does not come to the newest event. A link to a mark fits:
 * the caller ends its range there, and tells the reader of the mark.
 */
export function readChannel(
  source: ChannelSource,
  channel: string,
  state: ChannelState,
  { after, through, limit }: { after: Position; through: Position; limit: PageLimit },
): ChannelRead {
  const events: LogEvent[] = []
  // Everything up to here is in the reader's hands, in `events`, or trimmed.
  let seen = latest(after, state.trimmedThrough)
  if (!isAfter(state.newest, seen)) return { events, cut: false }
  let bytes = 0
  let damaged = false

  for (const { key, value } of recordsFrom(source.store, state, seen)) {
    const record = openRecord(key, value)
    if (!record) {
      damaged = true
      continue
    }
    if (isAfter(record.previous, seen) && !isMark(source.marks, record.previous)) {
      return events.length > 0 ? { events, cut: true } : gapAfter(source, state, seen)
    }
    damaged = false
    const from = indexAfter(record.stamps, seen)
    let to = from
    let full = false
    for (; to < record.stamps.length && !full; to += 1) {
      const stamp = record.stamps[to] as StoredStamp
      if (isAfter(stamp.position, through)) break
      bytes += stamp.bytes
      full = events.length + to - from + 1 >= limit.events || bytes >= limit.bytes
    }
    for (const event of record.events(channel, from, to)) events.push(event)
    if (full) return { events, cut: true }
    if (to < record.stamps.length) return { events, cut: false }
    seen = latest(seen, (record.stamps.at(-1) as StoredStamp).position)
  }
  const isWhole = !isAfter(state.newest, seen) || (!damaged && isAfter(state.newest, through))
  if (isWhole) return { events, cut: false }
  return events.length > 0 ? { events, cut: true } : { wholeAfter: state.newest }
}

/** The records with events after a position. The record that starts at or before the position may be one of them. */
function recordsFrom(store: Store, { number }: ChannelState, after: Position): Iterable<Entry> {
  const first = recordKey(number, origin)
  return store.range(store.lastKeyUpTo(recordKey(number, after), first) ?? first, recordKey(number + 1, origin))
}

function indexAfter(stamps: readonly StoredStamp[], position: Position): number {
  // A shortcut: most reads start before a record.
  if (isAfter((stamps[0] as StoredStamp).position, position)) return 0
  const index = stamps.findIndex((stamp) => isAfter(stamp.position, position))
  return index === -1 ? stamps.length : index
}

/** The end of the channel's last gap after a position. From there on the channel is whole. */
function gapAfter({ store, marks }: ChannelSource, state: ChannelState, after: Position): ChannelGap {
  let wholeAfter = after
  let seen = after
  for (const { key, value } of recordsOf(store, state)) {
    const record = openRecord(key, value)
    if (!record) continue
    if (isAfter(record.previous, seen) && !isMark(marks, record.previous)) wholeAfter = record.previous
    seen = latest(seen, (record.stamps.at(-1) as StoredStamp).position)
  }
  return { wholeAfter: isAfter(state.newest, seen) ? state.newest : wholeAfter }
}

export function readOne(source: PageSource, channel: string, range: PageRange): SelectorRead {
  const state = source.stateOf(channel)
  const lost = lossAfter(state, range.after)
  if (lost) return lost
  const read = readChannel(source, channel, state, range)
  if ('wholeAfter' in read) {
    return { wholeAfter: read.wholeAfter, forced: isAfter(state.invalidatedThrough, range.after) }
  }
  // When the read was cut short, it covers the channel up to its last event only.
  const last = read.cut ? read.events.at(-1)?.position : undefined
  return { events: read.events, through: last ?? range.through }
}

/** The newest positions of a channel, newest first. Undefined when a record is damaged: a read forward tells what is left. */
export function readChannelBack(source: PageSource, channel: string, range: BackRange): BackPage | undefined {
  const { store, stateOf } = source
  const state = stateOf(channel)
  const wholeAfter = latest(range.after, state.trimmedThrough)
  const positions: TypedPosition[] = []
  // An unknown channel returns here. It has no number, and so no records.
  if (!isAfter(state.newest, wholeAfter)) return { positions, completeAfter: wholeAfter, wholeAfter }
  const first = recordKey(state.number, origin)
  for (const { key, value } of store.rangeBack(recordKey(state.number, range.through), first)) {
    const record = openRecord(key, value)
    if (!record) return undefined
    for (let index = record.stamps.length - 1; index >= 0; index -= 1) {
      const stamp = record.stamps[index] as StoredStamp
      if (isAfter(stamp.position, range.through)) continue
      if (!isAfter(stamp.position, wholeAfter)) return { positions, completeAfter: wholeAfter, wholeAfter }
      if (positions.length === range.most) return { positions, completeAfter: stamp.position, wholeAfter }
      positions.push(stamp)
    }
  }
  return { positions, completeAfter: wholeAfter, wholeAfter }
}

export interface BackRange {
  readonly after: Position
  readonly through: Position
  readonly most: number
}
