import { encodeComment, encodeEvent, encodeRetry } from './encode.ts'
import type { GapReason } from './gap-reason.ts'

/** The first frame of a stream (§4.4). */
export interface Hello {
  /** A cursor was sent, and everything after it follows. */
  readonly resumed: boolean
  /** The cursor the hub saw, null for none: a client that sent one then knows that a proxy took it away. */
  readonly requested: string | null
  /** The longest silence to expect; a line quiet for much longer is dead. */
  readonly heartbeatMs: number
  /** Names this connection in the hub's own reports. */
  readonly connection: string
  /** How many of the events that `?replay=N` asked for are held, and follow. Left out when it was not asked for. */
  readonly replay?: number
  /** How long the reader's rights still hold. Left out when they do not expire. */
  readonly expiresInMs?: number
}

/** Something after the cursor is gone; the frame's id is where the stream goes on (§4.6). */
export interface SyncRequired {
  readonly reason: GapReason
  /** The channels that lost something. */
  readonly channels: readonly string[]
  /** The cursor that could not be served. */
  readonly requested: string
  /** The id of the oldest event still held; null when there is none, and for a subscription with a pattern. */
  readonly oldest: string | null
  /** The id from which the stream goes on. */
  readonly latest: string
  /** The state at that position or after it, when the hub has a hook that gives it. */
  readonly snapshot?: unknown
  /** Where the reader can load the state itself. Left out when `snapshot` is there, or the hub knows no such address. */
  readonly snapshotUrl?: string
  /** The newest event of each key that the channels retain, at that position or after it, in order. */
  readonly retained?: readonly RetainedEvent[]
}

/** An event that a channel keeps until another of the same key replaces it (§5.9). */
export interface RetainedEvent {
  readonly id: string
  readonly channel: string
  readonly key: string
  readonly type: string
  /** The text that a stream would give. */
  readonly data: string
  /** Left out, the data is JSON (§4.16). */
  readonly content?: 'text'
}

/** Moves a cursor and says nothing else: its id is all it has (§4.9). */
export type Checkpoint = Readonly<Record<string, never>>

/** An end that is meant (§4.10). It has no id, so the reader comes back with the cursor it holds. */
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

/** `id` is left out when the cursor was not accepted: `hello` must never move a cursor over a gap. */
export function encodeHello(hello: Hello, { id, retryMs }: { id?: string; retryMs: number }): string {
  return encodeRetry(retryMs) + encodeControl('hello', hello, id)
}

export function encodeSyncRequired(sync: SyncRequired, { id }: { id: string }): string {
  return encodeControl('sync-required', sync, id)
}

/** For a reader whose channels are quiet. It has data because some browsers drop the id of a block without. */
export function encodeCheckpoint({ id }: { id: string }): string {
  const nothing: Checkpoint = {}
  return encodeControl('checkpoint', nothing, id)
}

/** `retryMs` is when the reader should be back; left out, what it was told before holds. */
export function encodeClose(close: Close, { retryMs }: { retryMs?: number } = {}): string {
  return (retryMs === undefined ? '' : encodeRetry(retryMs)) + encodeControl('close', close)
}

/** A sign of life that moves nothing. */
export function encodeHeartbeat(): string {
  return encodeComment('hb')
}

function encodeControl(type: string, data: unknown, id?: string): string {
  return encodeEvent({ type, data: JSON.stringify(data), ...(id === undefined ? {} : { id }) })
}
