import type { Schemas } from '@rejoin/protocol'
import type { Backoff } from './backoff-formulas.ts'
import type { Clock } from './clock.ts'
import type { CursorStore } from './persistence.ts'
import type { ReconnectReports } from './reconnect-reports.ts'
import type { RequestOptions } from './request.ts'
import type { TransportName } from './stream-state.ts'

export interface ConnectOptions extends RequestOptions, ReadOptions {
  /**
   * The cursor to start from, such as the `cursor` of an earlier stream: everything after it is delivered first.
   * `earliest` starts with the oldest events that the hub holds.
   * @defaultValue none: the stream starts with what happens next
   */
  from?: 'earliest' | (string & {}) | null
  /**
   * Keeps the cursor beyond the page, in `sessionStorage` ('session') or in a store of yours. A cursor that is found
   * there takes the place of `from`. It is saved after the handlers have run, and their promises have settled, so that a
   * page that is left in between gets the event again. Give a store of your own when several users share a tab, or
   * several streams a URL: 'session' goes by the URL alone.
   * @defaultValue none: a page that is loaded again starts anew
   */
  persist?: 'session' | CursorStore
  /**
   * The shortest wait before a retry, and what is doubled for each further one, in ms. A longer `retry:` of the server
   * replaces it. Smaller comes back sooner, and asks a server that is down more often.
   * @defaultValue 500
   */
  retryMs?: number
  /**
   * The longest wait before a retry that the client chooses, in ms. A server may ask for more, by `retry:` or
   * `Retry-After`, up to ten minutes. Up to a tenth is added to a wait at its limit, so that clients do not come back
   * together.
   * @defaultValue 30 000
   */
  maxRetryMs?: number
  /**
   * Retries in a row that may fail before the stream closes with `too-many-retries`. The count starts again after a
   * stream that was good for five seconds, when the network comes back, and when the tab is seen again.
   * @defaultValue Infinity: a laptop that was shut for a weekend continues where it was
   */
  maxRetries?: number
  /**
   * How waits are spread: 'full', 'equal', '±25%', '+20%', 'decorrelated', 'none', or a function that gives the wait in ms.
   * @defaultValue 'full', which keeps the clients of a hub that comes back furthest apart
   */
  backoff?: Backoff
  /**
   * The ways to reach the hub, best first. The next one has its turn when streams do not get through: two on which no
   * byte arrives, three in a row that end at once. The first is tried again after half an hour, and once after a minute
   * when a server that was restarted, or a network that was gone, would have looked the same. The cursor is kept.
   * 'event-source' hides why it fails, so the next one also has its turn when the browser gives up on it.
   * @defaultValue ['fetch', 'long-poll']. 'event-source' can send no headers, and gets only types that have a handler:
   * where more is asked for, that is reported and the next one is used. It does not see what was published as text, and takes
   * data for text where it is no JSON.
   */
  transports?: readonly TransportName[]
  /**
   * Lets go of the connection while the page is hidden, and catches up when it is seen again. Saves connections where
   * people keep many tabs; a hidden page then hears nothing. A page that the browser keeps for the back button lets go
   * in any case.
   * @defaultValue false: a healthy stream is left alone
   */
  pauseWhenHidden?: boolean
  /**
   * Reads through one connection for all tabs of this browser that have this stream open. One tab reads, and the others get
   * what it reads; when it is closed, crashes or is frozen, another one goes on from its own cursor. Tabs share when their URL
   * and the given text are the same. Give the id of the signed-in user: with `true`, a tab of another user of the same
   * site would get what the first one's connection may read. With `token` or `headers`, `true` is refused for that reason.
   * Where a browser has no Web Locks, as in a page without HTTPS, each tab reads for itself.
   * @defaultValue none: one connection for each tab, of which HTTP/1.1 allows six
   */
  shareAcrossTabs?: string | true
  /**
   * Where to tell of reconnects: a URL that gets them as a JSON array by POST, or a function. They are sent together
   * once there is a connection again, at most every 30 s, so that an outage is not made worse.
   * @defaultValue nowhere
   */
  reports?: ReconnectReports
  /**
   * Closes the stream when it is aborted, like `close()`.
   * @defaultValue none
   */
  signal?: AbortSignal
  /**
   * Time and chance, for tests.
   * @defaultValue those of the platform
   */
  clock?: Clock
}

/** How events are read. */
export interface ReadOptions {
  /**
   * How `data` is read. What a hub was given as text is a string in any case. Other data that is not JSON goes to
   * `onInvalid`; with 'text', nothing is read and every `data` is a string.
   * @defaultValue 'json'
   */
  parse?: 'json' | 'text'
  /**
   * A schema for each type whose data is to be checked, of any library that follows Standard Schema. Handlers get what
   * the schema makes of the data; what it refuses goes to `onInvalid`. Events wait for a schema that is async.
   * @defaultValue none: data is taken as it comes
   */
  schemas?: Schemas
  /**
   * How many of the last events `getSnapshot` shows. They stay in memory, and no others do.
   * @defaultValue 100
   */
  keep?: number
}
