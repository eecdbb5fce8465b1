import { isAfter, latest, origin, type Position } from '@rejoin/protocol'
import type { Complete } from '../../../with-defaults.ts'
import type { LogEvent, WindowOptions } from '../../contract.ts'
import { eventBytes } from '../../event-bytes.ts'
import type { Entry, Store } from '../files/store.ts'
import { recordKey } from '../format/keys.ts'
import { lastMarkBetween, type Marks } from '../format/marks.ts'
import { openRecord, type StoredStamp } from '../format/record.ts'
import type { ChannelState } from '../format/state.ts'

// One commit trims at most this many events beyond those that come in, and so do all reads of one turn. So a channel that is
// far over its window shrinks over several commits, each of which takes some milliseconds. Until then its events are served.
export const trimAtMost = 512

export interface Trimming {
  /** The window of the channel. */
  readonly window: Complete<WindowOptions>
  readonly now: number
  /** How many events may go at most, with each left-over record counted as one. The next trim removes the rest. */
  readonly atMost: number
  readonly marks: Marks
  /** Set when the whole log is over its budget: events up to `through` go as well, until so many bytes are gone. */
  readonly excess?: { readonly bytes: number; readonly through: Position } | undefined
}

export interface Trimmed {
  /** The keys of records of which nothing is left. The commit that stores the state has to remove them. */
  readonly emptied: Buffer[]
  /** How many of the fresh events went at once, and need not be stored. */
  readonly stale: number
  /** The number that counts against `atMost`. */
  readonly steps: number
  /**
   * Whether `atMost` stopped the trim. False for a channel that stays over its window because it has no records left to remove:
   * another try would do nothing, commit after commit.
   */
  readonly isCutShort: boolean
  /** The position of the first event that stays, when the trim came to it. */
  readonly kept: Position | undefined
}

/**
 * The one judgement of what a window keeps. A commit acts on it for the channels it touches, a read for its copy of a channel's
 * state. The sweep asks for a commit for the quiet channels, and a read for what it found.
 */
export function isOverWindow(
  { events, bytes, oldestAt }: ChannelState,
  { maxEvents, maxBytes, maxAgeMs }: Complete<WindowOptions>,
  now: number,
): boolean {
  return events > 0 && (events > maxEvents || bytes > maxBytes || oldestAt < now - maxAgeMs)
}

/** Whether a channel has been empty since before a time and retains nothing, so that the log can forget it. */
export function isForgettable({ events, emptySince, retained }: ChannelState, emptyBefore: number): boolean {
  return events === 0 && emptySince < emptyBefore && !retained?.keys
}

/**
 * Trims a channel's oldest events until it is within its window, or `atMost` is used up. Changes only `state`, not the store.
 *
 * @param fresh - events that are counted in `state`, but not in the store yet
 */
export function trimChannel(
  store: Store,
  state: ChannelState,
  fresh: readonly LogEvent[],
  { window, now, atMost, marks, excess }: Trimming,
): Trimmed {
  const emptied: Buffer[] = []
  let left = atMost
  let freed = 0
  let hasEvicted = false
  let kept: Position | undefined
  // The clock may have been ahead when an event came. The age of such an event counts from when it is found to be the oldest.
  // Otherwise it, and all behind it, would stay until then.
  state.oldestAt = Math.min(state.oldestAt, now)
  state.emptySince = Math.min(state.emptySince, now)
  let aheadSince = state.oldestAt

  const isOver = () => isOverWindow(state, window, now)

  const isExcess = (position: Position) =>
    excess !== undefined && freed < excess.bytes && !isAfter(position, excess.through)

  /** Evicts an event, if it has to go. Returns whether it did. */
  function evict(stamp: Pick<StoredStamp, 'position' | 'at' | 'bytes'>): boolean {
    const isAhead = stamp.at > now
    state.oldestAt = isAhead ? aheadSince : stamp.at
    if (!isAhead) aheadSince = now
    if (left <= 0 || !(isOver() || isExcess(stamp.position))) {
      kept = stamp.position
      return false
    }
    left -= 1
    freed += stamp.bytes
    hasEvicted = true
    state.events -= 1
    // Never below zero: an earlier version counted characters, not bytes.
    state.bytes = Math.max(0, state.bytes - stamp.bytes)
    state.trimmedThrough = stamp.position
    if (state.events === 0) state.emptySince = now
    return true
  }

  const trimmed = (stale = 0) => {
    if (hasEvicted) passMarks()
    return { emptied, stale, steps: atMost - left, isCutShort: left <= 0 && isOver(), kept }
  }

  /** A mark goes with the events before it: a reader that is told of their trim is not told of the mark as well. */
  function passMarks(): void {
    if (!kept && state.events > 0) return
    state.trimmedThrough = lastMarkBetween(marks, state.trimmedThrough, kept) ?? state.trimmedThrough
  }

  if (!isOver() && (!excess || state.events === 0)) return trimmed()
  let damaged = false
  for (const { key, value } of recordsOf(store, state)) {
    // Stops before it opens the next record: a channel that is far over its window may have tens of thousands.
    if (left <= 0 && !damaged) return trimmed()
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
    const before = left
    for (const stamp of record.stamps) {
      if (isAfter(stamp.position, state.trimmedThrough) && !evict(stamp)) return trimmed()
    }
    // A left-over record had no event to evict, but opening it took as long.
    if (left === before) left -= 1
    emptied.push(key)
  }
  if (damaged) {
    state.trimmedThrough = latest(state.trimmedThrough, fresh[0]?.previous ?? state.newest)
    recount(store, state, fresh, now)
  }
  const stays = fresh.findIndex((event) => !evict({ ...event, bytes: eventBytes(event) }))
  return trimmed(stays === -1 ? fresh.length : stays)
}

/**
 * The keys of records of which the channel holds nothing any more, oldest first, some at a time. An invalidation takes all events
 * at once, but must not remove ten thousand records in one turn. No read reaches these records, because they end at or before
 * `trimmedThrough`.
 */
export function recordsLeftOver(store: Store, { number, trimmedThrough }: ChannelState, atMost: number): Buffer[] {
  const first = recordKey(number, origin)
  const last = store.lastKeyUpTo(recordKey(number, trimmedThrough), first)
  if (!last || atMost <= 0) return []
  const found: Buffer[] = []
  for (const key of store.keys(first, last)) {
    found.push(key)
    if (found.length === atMost) return found
  }
  // The last record begins at or before `trimmedThrough`, and may end after it.
  const sealed = store.get(last)
  const end = sealed && openRecord(last, sealed)?.stamps.at(-1)?.position
  if (end && !isAfter(end, trimmedThrough)) found.push(last)
  return found
}

export function recordsOf(store: Store, { number }: ChannelState): Iterable<Entry> {
  return store.range(recordKey(number, origin), recordKey(number + 1, origin))
}

/** Counts the events and bytes of a channel anew: a damaged record does not tell how many it had. */
function recount(store: Store, state: ChannelState, fresh: readonly LogEvent[], now: number): void {
  const costs = fresh.map(eventBytes)
  for (const { key, value } of recordsOf(store, state)) {
    for (const stamp of openRecord(key, value)?.stamps ?? []) {
      if (isAfter(stamp.position, state.trimmedThrough)) costs.push(stamp.bytes)
    }
  }
  state.events = costs.length
  state.bytes = costs.reduce((sum, cost) => sum + cost, 0)
  if (state.events === 0) state.emptySince = now
}
