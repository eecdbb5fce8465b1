import { encodeComment, encodeEvent, encodeRetry } from './encode.ts'
import type { GapReason } from './gap-reason.ts'

/** The first frame of a stream (§4.4). */
export interface Hello {
  /** The reader sent a cursor, and everything after the cursor follows. */
  readonly resumed: boolean
  /**
   * The cursor that the hub received, or null. A client that sent a cursor and reads null knows that a proxy removed
   * it.
   */
  readonly requested: string | null
  /** The longest silence to expect. A connection that is silent for much longer is dead. */
  readonly heartbeatMs: number
  /** Names this connection in the hub's own reports. */
  readonly connection: string
  /** How many of the events that `?replay=N` asks for the hub holds and sends. Left out without `?replay`. */
  readonly replay?: number | undefined
  /** The time until the reader's rights expire. Left out when they do not expire. */
  readonly expiresInMs?: number | undefined
}

/** Events after the cursor are gone. The stream goes on from the frame's id (§4.6). */
export interface SyncRequired {
  readonly reason: GapReason
  /** The channels that lost events. */
  readonly channels: readonly string[]
  /** The cursor that could not be served. */
  readonly requested: string
  /**
   * The id of the oldest event that the hub still holds. Null when it holds none, and for a subscription with a
   * pattern.
   */
  readonly oldest: string | null
  /** The id from which the stream goes on. */
  readonly latest: string
  /** The state at `latest` or later, when the hub has the hook `snapshot`. */
  readonly snapshot?: unknown
  /** Where the reader can load the state. Left out when `snapshot` is there, or when the hub knows no such URL. */
  readonly snapshotUrl?: string
  /** The newest event of each key that the channels retain, at `latest` or later, in order. */
  readonly retained?: readonly RetainedEvent[]
}

/** An event that a channel keeps until a newer event with the same key replaces it (§5.9). */
export interface RetainedEvent {
  readonly id: string
  readonly channel: string
  readonly key: string
  readonly type: string
  /** The text that a stream would carry. */
  readonly data: string
  /** Without it, the data is JSON (§4.16). */
  readonly content?: 'text'
}

/** A frame that only moves the cursor: its id is all that it carries (§4.9). */
export type Checkpoint = Readonly<Record<string, never>>

/**
 * The hub closes the stream on purpose (§4.10). The frame has no id, so the reader returns with the cursor that it
 * holds.
 */
export interface Close {
  readonly reason: CloseReason
}

export const closeReasons = [
  'drain',
  'maintenance',
  'token-expired',
  'finished',
  'replaced',
  'overloaded',
  'log-unavailable',
  'admin',
] as const

export type CloseReason = (typeof closeReasons)[number]

/** Leave `id` out when the cursor was not accepted: `hello` must never move a cursor over a gap. */
export function encodeHello(hello: Hello, { id, retryMs }: { id?: string | undefined; retryMs: number }): string {
  return encodeRetry(retryMs) + encodeControl('hello', hello, id)
}

/** @param snapshot - JSON text, which is not parsed: a state may be large. */
export function encodeSyncRequired(
  sync: Omit<SyncRequired, 'snapshot'>,
  { id, snapshot }: { id: string; snapshot?: string | undefined },
): string {
  const data = JSON.stringify(sync)
  const whole = snapshot === undefined ? data : `${data.slice(0, -1)},"snapshot":${snapshot}}`
  return encodeEvent({ id, type: 'sync-required', data: whole })
}

/**
 * Moves the cursor of a reader whose channels are quiet. The frame has data because some browsers ignore the id of a
 * block without data.
 */
export function encodeCheckpoint({ id }: { id: string }): string {
  const nothing: Checkpoint = {}
  return encodeControl('checkpoint', nothing, id)
}

/** `retryMs` tells the reader how long to wait before it returns. Without it, the last `retry:` still holds. */
export function encodeClose(close: Close, { retryMs }: { retryMs?: number } = {}): string {
  return (retryMs === undefined ? '' : encodeRetry(retryMs)) + encodeControl('close', close)
}

/** A comment that shows that the connection is alive. It moves no cursor. */
export function encodeHeartbeat(): string {
  return encodeComment('hb')
}

function encodeControl(type: string, data: unknown, id?: string): string {
  return encodeEvent({ id, type, data: JSON.stringify(data) })
}
