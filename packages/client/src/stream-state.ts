import type { CloseReason as HubReason } from '@rejoin/protocol'

export interface StreamState {
  /**
   * `connecting`: a request is under way, or no byte of its body has arrived yet, which a proxy may hold back; or the
   * store of `persist` has not answered yet. `connected`: events arrive as they happen. `backoff`: the stream waits for
   * `nextRetryAt`. `closed`: the stream is over, see `closeReason`. Unless that is `closed`, `reconnect()` opens the
   * stream again.
   */
  readonly state: 'connecting' | 'connected' | 'backoff' | 'closed'
  /** Connections that failed or were cut since the last good one. */
  readonly attempt: number
  /**
   * When the next attempt starts, in whole ms since 1970. `null` in any state but `backoff`. Also `null` while the page
   * is hidden (`pauseWhenHidden`) or kept for the back button.
   */
  readonly nextRetryAt: number | null
  /** When the last event arrived, in ms since 1970; `null` before the first. */
  readonly lastEventAt: number | null
  /**
   * Whether the page may be out of date: from an overdue heartbeat or a lost connection until a connection proves
   * itself. Also while the stream waits for a handler for longer than for a heartbeat. Always true when the stream is
   * closed.
   */
  readonly stale: boolean
  /** Whether `hello` or an event has ever arrived. Until then the stream connects, and does not reconnect. */
  readonly opened: boolean
  /** The id up to which handlers have got everything. Pass it to a later `connect` as `from` to continue there. */
  readonly cursor: string | null
  /**
   * Why the stream is closed. While the stream waits for a retry: why the hub ended the last connection on purpose or
   * rejected it, if it did, or that your code gave no credentials.
   */
  readonly closeReason: CloseReason | null
  /**
   * The server's message when it rejected the last request, written for developers: a hub names the cause and what to
   * do. `null` when the server said nothing that can be read, and from the next request on.
   */
  readonly closeMessage: string | null
  /** The transport in use. */
  readonly transport: TransportName
}

export type TransportName = 'fetch' | 'event-source' | 'long-poll'

/**
 * Why a stream is closed. `closed`: by `close()` or `signal`. `finished`: the server has nothing more to send.
 * `unauthorized`: the server wants other credentials (401). `http-…`: another status that a retry would not change.
 * `wrong-content-type`: the answer is no event stream. `too-large`: an event is larger than the client takes.
 * `too-many-retries`: see `maxRetries`. `no-transport`: the only transport cannot be used, for a reason that was
 * reported. After the other reasons the stream returns. `no-credentials`: your function for `token` or `headers` failed,
 * with an error that was reported. `redirect`: the server redirects in a loop, or to a server that cannot be reached.
 * From a hub: `drain`, `maintenance`, `token-expired`, `replaced`, `overloaded`,
 * `log-unavailable`, `admin`.
 */
export type CloseReason =
  | 'closed'
  | 'unauthorized'
  | `http-${number}`
  | 'wrong-content-type'
  | 'too-large'
  | 'too-many-retries'
  | 'no-transport'
  | 'no-credentials'
  | 'redirect'
  | HubReason
