import { isAfter, latest, type Position } from '@rejoin/protocol'
import type { Entry, Store } from '../files/store.ts'
import { ByteWriter, unseal } from '../format/bytes.ts'
import { agedNumberOf, agedPositionOf, ageKey, ageRange } from '../format/keys.ts'

export interface Shrinking {
  /** How many bytes have to go. */
  readonly bytes: number
  /** How many events may go at most. The next commits evict the rest. */
  readonly atMost: number
  /** The newest position of the log. */
  readonly last: Position
  /** Evicts a channel's events up to `excess.through`, until `excess.bytes` are gone. */
  evict(channel: AgedChannel, excess: { bytes: number; through: Position }, atMost: number): Evicted
}

export interface Evicted {
  readonly bytes: number
  /** The number that counts against `atMost`, 1 or more. */
  readonly steps: number
  /** The position of the channel in the order of age now; undefined when it holds nothing any more. */
  readonly position: Position | undefined
}

/**
 * Evicts the oldest events of all channels, until the log is within its budget or `atMost` is used up.
 *
 * @returns whether anything went. If not, another try would do nothing either.
 */
export function shrink(store: Store, { bytes, atMost, last, evict }: Shrinking): boolean {
  let excess = bytes
  let left = atMost
  /** The oldest position that stays so far. No channel behind it evicts anything: its events are newer. */
  let earliest: Position | undefined
  for (const channel of channelsByAge(store)) {
    if (excess <= 0 || left <= 0 || (earliest && isAfter(channel.position, earliest))) break
    const through = latest(shortlyAfter(channel.position, last), channel.next ?? last)
    const gone = evict(channel, { bytes: excess, through }, left)
    excess -= gone.bytes
    left -= gone.steps
    if (gone.position && (!earliest || isAfter(earliest, gone.position))) earliest = gone.position
  }
  return left < atMost
}

/**
 * A position a 64th of the way to the newest event. Up to there a channel evicts at once. Without that, channels whose events
 * alternate would take turns, one event each, with a search of the file for every event.
 */
function shortlyAfter({ ms, seq }: Position, last: Position): Position {
  if (ms === last.ms) return { ms, seq: seq + Math.floor((last.seq - seq) / 64) }
  return { ms: ms + Math.floor((last.ms - ms) / 64), seq: Number.MAX_SAFE_INTEGER }
}

/**
 * A channel in the order of age, by which a log with a budget finds its oldest events. A channel stands at or before its oldest
 * event. To move the entry with every trim would cost each publish two writes, so the channel is moved when its turn has come.
 */
export interface AgedChannel {
  readonly key: Buffer
  readonly position: Position
  readonly number: number
  /** Undefined when the entry is damaged. */
  readonly name: string | undefined
  /** The position of the next channel; undefined for the last one. */
  readonly next: Position | undefined
}

export function agedEntry(position: Position, channelNumber: number, name: string): Entry {
  const key = ageKey(position, channelNumber)
  writer.text(name)
  return { key, value: writer.seal(key) }
}

const writer = new ByteWriter()

/** The caller has to walk it within one turn, because it holds a snapshot of the store. */
function* channelsByAge(store: Store): Generator<AgedChannel> {
  let before: Omit<AgedChannel, 'next'> | undefined
  for (const { key, value } of store.range(ageRange.start, ageRange.end)) {
    const position = agedPositionOf(key)
    if (before) yield { ...before, next: position }
    before = { key, position, number: agedNumberOf(key), name: unseal(key, value)?.text() }
  }
  if (before) yield { ...before, next: undefined }
}
