import type { CloseReason as HubReason } from '@rejoin/protocol'

/** What a stream shows of itself. */
export interface StreamState {
  /**
   * `connecting`: a request is under way, or is answered without a byte of the body yet, which a proxy may hold back; or the
   * store of `persist` has yet to say where to begin.
   * `connected`: events arrive as they happen. `backoff`: waiting for `nextRetryAt`. `closed`: over, see
   * `closeReason`; unless that is `closed`, `reconnect()` opens the stream again.
   */
  readonly state: 'connecting' | 'connected' | 'backoff' | 'closed'
  /** Connections that failed or were cut since the last good one. */
  readonly attempt: number
  /**
   * When the next attempt is made, in whole ms since 1970. `null` unless the state is `backoff`, and then while the page is
   * hidden (`pauseWhenHidden`) or kept for the back button.
   */
  readonly nextRetryAt: number | null
  /** When the last event arrived, in ms since 1970; `null` before the first. */
  readonly lastEventAt: number | null
  /**
   * What was shown last may be out of date: from when a heartbeat is overdue or the connection is lost, until the next
   * one has proved itself. Also while the stream waits for a handler for longer than for a heartbeat.
   */
  readonly stale: boolean
  /**
   * The id up to which handlers have been given everything. Give it to a later `connect` as `from` to continue there.
   */
  readonly cursor: string | null
  /**
   * Why the stream is closed; while it waits to return, why the hub ended the last connection on purpose, if it did.
   */
  readonly closeReason: CloseReason | null
  /**
   * What the server said when it rejected the last request, in words for a developer: a hub names the cause and what to do.
   * `null` when the server said nothing that can be read, and from the next request on.
   */
  readonly closeMessage: string | null
  /** How the hub is reached at the moment. */
  readonly transport: TransportName
}

export type TransportName = 'fetch' | 'event-source' | 'long-poll'

/**
 * Why a stream is closed. `closed`: by `close()`. `finished`: the server has nothing more to send. `unauthorized`: it
 * wants other credentials (401). `http-…`: another status with which no retry would help. `too-large`: an event is
 * larger than a client takes. `too-many-retries`: see `maxRetries`. `no-transport`: the only one of `transports` cannot be
 * used, for a reason that was reported. The others are a hub's, and the stream returns after
 * them: `drain`, `maintenance`, `token-expired`, `replaced`, `overloaded`, `log-unavailable`, `admin`.
 */
export type CloseReason =
  | 'closed'
  | 'unauthorized'
  | `http-${number}`
  | 'wrong-content-type'
  | 'too-large'
  | 'too-many-retries'
  | 'no-transport'
  | HubReason
