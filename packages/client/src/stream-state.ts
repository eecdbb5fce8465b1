/** What a stream shows of itself. */
export interface StreamState {
  /**
   * `connecting`: a request is under way. `connected`: events arrive as they happen. `backoff`: waiting for
   * `nextRetryAt`. `closed`: over for good, see `closeReason`.
   */
  readonly state: 'connecting' | 'connected' | 'backoff' | 'closed'
  /** Connections that failed or were cut since the last good one. */
  readonly attempt: number
  /** When the next attempt is made, in ms since 1970; `null` unless the state is `backoff`. */
  readonly nextRetryAt: number | null
  /** When the last event arrived, in ms since 1970; `null` before the first. */
  readonly lastEventAt: number | null
  /** The id up to which everything has been handled. Give it to a later `connect` as `from` to continue there. */
  readonly cursor: string | null
  readonly closeReason: CloseReason | null
}

/**
 * Why a stream is closed. `closed`: by `close()`. `finished`: the server has nothing more to send (204). `unauthorized`:
 * it wants other credentials (401). `http-…`: another status with which no retry would help. `too-large`: an event is
 * larger than a client takes. `too-many-retries`: see `maxRetries`.
 */
export type CloseReason =
  | 'closed'
  | 'finished'
  | 'unauthorized'
  | `http-${number}`
  | 'wrong-content-type'
  | 'too-large'
  | 'too-many-retries'
