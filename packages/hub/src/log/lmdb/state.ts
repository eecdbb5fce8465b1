import { isSame, origin, type Position } from '@rejoin/protocol'
import type { RetainedSize } from '../retained.ts'
import { ByteWriter, unseal } from './bytes.ts'

/** What the log knows of itself; written with every commit. */
export interface LogState {
  /** The newest position assigned to anything that was committed. */
  last: Position
  /** Stands for every channel that has no entry: each that was ever trimmed and then forgotten is below it. */
  forgottenThrough: Position
  /** The number the next new channel gets. */
  nextChannel: number
  /** How many channels have an entry: one that is missing would be a loss that nobody sees. */
  channels: number
  /** How many idempotency keys are kept. */
  keys: number
  /** The last position of the feed's newest entry, `origin` before the first. */
  feedLast: Position
  /** How many entries the feed has. */
  feedEntries: number
  /** Bytes of the events in all channels that stand in the order of age; counted while the log has a budget. */
  heldBytes: number
}

export function sealLogState(key: Uint8Array, state: LogState): Buffer {
  const { last, forgottenThrough, nextChannel, channels, keys, feedLast, feedEntries, heldBytes } = state
  writer.position(last)
  writer.position(forgottenThrough)
  writer.number(nextChannel)
  writer.number(channels)
  writer.number(keys)
  writer.position(feedLast)
  writer.number(feedEntries)
  writer.number(heldBytes)
  return writer.seal(key)
}

/** Undefined when it is damaged. */
export function openLogState(key: Uint8Array, sealed: Buffer): LogState | undefined {
  const reader = unseal(key, sealed)
  if (!reader) return undefined
  return {
    last: reader.position(),
    forgottenThrough: reader.position(),
    nextChannel: reader.number(),
    channels: reader.number(),
    keys: reader.number(),
    feedLast: reader.position(),
    feedEntries: reader.number(),
    // A folder of an earlier version has counted none.
    heldBytes: reader.isAtEnd ? 0 : reader.number(),
  }
}

/**
 * What the store keeps of a channel, beside its records. It is the only thing that stays of one that has gone quiet, so
 * it is short then: 15 to 20 bytes and the name.
 */
export interface ChannelState {
  /** Stands in the keys of its records, instead of the name. */
  readonly number: number
  /** Its last event or invalidation, to which the next event is linked. */
  newest: Position
  trimmedThrough: Position
  /** Where it was last invalidated, `origin` if never. */
  invalidatedThrough: Position
  events: number
  bytes: number
  /** When the oldest event it holds was appended; says nothing while it holds none. */
  oldestAt: number
  /** When it let go of its last event; says nothing while it holds one. */
  emptySince: number
  /** Where it ended. */
  ended?: Position
  /** What it retains under keys; most channels nothing. */
  retained?: RetainedSize
  /**
   * Where it stands in the order of age: at or before its oldest event. Its bytes are counted in `heldBytes` while it has
   * one.
   */
  agedAt?: Position
}

export function sealChannelState(key: Uint8Array, state: ChannelState): Buffer {
  const { number, newest, trimmedThrough, invalidatedThrough, events, bytes, oldestAt, emptySince } = state
  const allGone = isSame(trimmedThrough, newest)
  const neverVoid = isSame(invalidatedThrough, origin)
  const { ended, retained, agedAt } = state
  const held = (allGone ? 1 : 0) | (neverVoid ? 2 : 0) | (events === 0 ? 4 : 0)
  writer.number(held | (ended ? 8 : 0) | (retained?.keys ? 16 : 0) | (agedAt ? 32 : 0))
  writer.number(number)
  writer.position(newest)
  if (!allGone) writer.position(trimmedThrough)
  if (!neverVoid) writer.position(invalidatedThrough)
  if (events === 0) {
    writer.number(emptySince)
  } else {
    writer.number(events)
    writer.number(bytes)
    writer.number(oldestAt)
  }
  if (ended) writer.position(ended)
  if (retained?.keys) {
    writer.number(retained.keys)
    writer.number(retained.bytes)
  }
  if (agedAt) writer.position(agedAt)
  return writer.seal(key)
}

/** Undefined when it is damaged. */
export function openChannelState(key: Uint8Array, sealed: Buffer): ChannelState | undefined {
  const reader = unseal(key, sealed)
  if (!reader) return undefined
  const flags = reader.number()
  const number = reader.number()
  const newest = reader.position()
  const trimmedThrough = flags & 1 ? newest : reader.position()
  const invalidatedThrough = flags & 2 ? origin : reader.position()
  const isEmpty = (flags & 4) !== 0
  const events = isEmpty ? 0 : reader.number()
  const bytes = isEmpty ? 0 : reader.number()
  const since = reader.number()
  // One literal, in which times are times whether or not they say something: a field that is now a small number and now a
  // large one makes two kinds of object of it, and V8 then gives up optimising the loop that every event goes through.
  const held = { events, bytes, oldestAt: since, emptySince: since }
  const state: ChannelState = { number, newest, trimmedThrough, invalidatedThrough, ...held }
  if (flags & 8) state.ended = reader.position()
  if (flags & 16) state.retained = { keys: reader.number(), bytes: reader.number() }
  if (flags & 32) state.agedAt = reader.position()
  return state
}

const writer = new ByteWriter()
