import { encodeHello, encodeSyncRequired } from '@rejoin/protocol'
import type { Session } from './session.ts'
import type { SessionContext } from './session-context.ts'

/** What a stream begins with, as far as it depends on the cursor. */
export interface Greeting {
  /** Whether everything after the reader's cursor follows. */
  readonly resumed: boolean
  /** What the reader asked to start from. */
  readonly requested: string | null
  /** The id to hold from now on; undefined where a gap is announced next, which has one. */
  readonly id: string | undefined
  /** How many events of `replay=N` follow; undefined where that was not asked for. */
  readonly replay: number | undefined
}

/** The frame `hello` (§4.4). */
export function helloFrame(
  { heartbeatMs, retry, presence, environment }: SessionContext,
  session: Session,
  { resumed, requested, id, replay }: Greeting,
): Uint8Array {
  const { connection, subscription } = session
  const expiresAt = presence.expiresAt(session)
  // In advance, so that a client can be back with new rights before these end it.
  const expiry = expiresAt === undefined ? {} : { expiresInMs: Math.max(0, Math.floor(expiresAt - environment.now())) }
  const replayed = replay === undefined ? {} : { replay }
  const hello = { resumed, requested, heartbeatMs, connection, ...replayed, ...expiry }
  const retryMs = retry.forOne(subscription.channels)
  return Buffer.from(encodeHello(hello, id === undefined ? { retryMs } : { retryMs, id }))
}

/** Channels that the reader did not have before are whole from its cursor on. What was before that, it has to load. */
export function addedFrame(cursor: string, channels: readonly string[]): Uint8Array {
  const added = { reason: 'added' as const, channels, requested: cursor, oldest: null, latest: cursor }
  return Buffer.from(encodeSyncRequired(added, { id: cursor }))
}
