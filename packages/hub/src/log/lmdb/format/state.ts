import { isSame, origin, type Position } from '@rejoin/protocol'
import type { RetainedSize } from '../../retained.ts'
import { ByteWriter, unseal } from './bytes.ts'

/** The state of the whole log. Every commit writes it. */
export interface LogState {
  /** The newest position of all committed entries. */
  last: Position
  /** The `trimmedThrough` of every channel without an entry: no forgotten channel has lost anything after it. */
  forgottenThrough: Position
  /** The number of the next new channel. */
  nextChannel: number
  /** How many channels have an entry. Without this number, a missing entry would go unnoticed. */
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

/** Undefined when the value is damaged. */
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
    // An earlier version did not store this number.
    heldBytes: reader.isAtEnd ? 0 : reader.number(),
  }
}

/**
 * The state of a channel, beside its records. It is all that stays of a quiet channel, so it is short then: 15 to 20 bytes and
 * the name.
 */
export interface ChannelState {
  /** The channel's number in the keys of its records, where it replaces the name. */
  readonly number: number
  /** The position of the last event or invalidation, to which the next event is linked. */
  newest: Position
  trimmedThrough: Position
  /** The position of the last invalidation, `origin` if there was none. */
  invalidatedThrough: Position
  events: number
  bytes: number
  /** When the oldest event of the channel was appended; without meaning while it holds none. */
  oldestAt: number
  /** When the last event of the channel was trimmed; without meaning while it holds one. */
  emptySince: number
  /** The position of the channel's end. */
  ended?: Position
  /** How much the channel retains under keys. Most channels retain nothing. */
  retained?: RetainedSize
  /**
   * The channel's position in the order of age: at or before its oldest event. While it is set, the log's `heldBytes` includes
   * the bytes of the channel.
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

/** Undefined when the value is damaged. */
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
  // Both fields get a time, also the one without meaning. With a small number in one of them, V8 would see two kinds of object,
  // and give up optimising the loop that every event goes through.
  const held = { events, bytes, oldestAt: since, emptySince: since }
  const state: ChannelState = { number, newest, trimmedThrough, invalidatedThrough, ...held }
  if (flags & 8) state.ended = reader.position()
  if (flags & 16) state.retained = { keys: reader.number(), bytes: reader.number() }
  if (flags & 32) state.agedAt = reader.position()
  return state
}

const writer = new ByteWriter()
