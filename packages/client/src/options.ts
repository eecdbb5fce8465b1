import type { Schemas } from '@rejoin/protocol'
import type { RetryWait } from './backoff.ts'
import type { Clock } from './clock.ts'
import type { CursorStore } from './persistence.ts'
import type { ReconnectReports } from './reconnect-reports.ts'
import type { RequestOptions } from './request.ts'
import type { TransportName } from './stream-state.ts'

export interface ConnectOptions extends RequestOptions, ReadOptions {
  /**
   * Who reads: the id of the signed-in user. Only components with the same `identity` share a stream, and the cursor in
   * `sessionStorage` is kept for this user alone. Give it when the page cannot see who reads: with a cookie, with a
   * function for `token` or `headers`, or when a user gets tokens whose texts differ.
   * @defaultValue none: components with another text in `token` or `headers` get another stream. Where no text proves who
   * reads, a component gets a new stream when the others have left. The next user of the tab continues at the same cursor
   * in `sessionStorage`, except in components with a `token` that is a JWT.
   */
  identity?: string | undefined
  /**
   * The cursor to start from, such as the `cursor` of an earlier stream: everything after it is delivered first.
   * `earliest` starts with the oldest events that the hub holds.
   * @defaultValue none: the stream starts with the next event
   */
  from?: 'earliest' | (string & {}) | null | undefined
  /**
   * Keeps the cursor beyond the page, in `sessionStorage` ('session') or in your own store. A stored cursor replaces
   * `from`. The cursor is saved after the handlers have run and their promises have settled, so a page that is left
   * earlier gets the event again. 'session' knows the URL and the `identity`. Give your own store when several streams
   * of a page share both.
   * @defaultValue none: a page that is loaded again starts anew
   */
  persist?: 'session' | CursorStore | undefined
  /**
   * The shortest wait before a retry, in ms, doubled for each further retry. A longer `retry:` of the server replaces
   * it. A smaller value reconnects sooner, and sends more requests to a server that is down.
   * @defaultValue 500
   */
  retryMs?: number | undefined
  /**
   * The longest wait before a retry that the client chooses, in ms. A server may ask for more, by `retry:` or
   * `Retry-After`, up to ten minutes. A wait at its limit gets up to a tenth more, so that clients do not come back
   * together.
   * @defaultValue 30 000
   */
  maxRetryMs?: number | undefined
  /**
   * How many retries in a row may fail before the stream closes with `too-many-retries`. With a limit, waits grow from
   * the first failure. The count starts again after a
   * stream that was good for five seconds, when the network comes back, and when the tab is seen again.
   * @defaultValue Infinity: a laptop that was shut for a weekend continues where it was
   */
  maxRetries?: number | undefined
  /**
   * How clients spread their waits. With 'full', each draws from a range that doubles with every failure. A function
   * returns the wait in ms; it is raised to the server's floor and cut at the limit. When it throws, the error is
   * reported, and the wait is the floor. With either, waits grow from the first failure.
   * @defaultValue 'full', which spreads the clients of a returning hub the widest. While the page is visible and the
   * server has few clients (`retry:` of at most 3 s), waits stay below 3 s for the first 32 retries, about a minute. A
   * worker, or Node, counts as visible.
   */
  backoff?: 'full' | ((wait: RetryWait) => number) | undefined
  /**
   * The transports to reach the hub, best first. The client changes to the next transport when streams do not get
   * through: two on which no byte arrives, three in a row that end at once, or a first one that says nothing. It tries the first transport again after
   * half an hour; once after a minute, when a restarted server or a dead network could have looked the same. The cursor
   * is kept.
   *
   * 'event-source' sends no headers, and gets only types that have a handler: when the options or handlers ask for
   * more, that is reported and the next transport is used. It hides why it fails, so the client also changes when the
   * browser gives up on it. It does not see which events were published as text, and takes data that is no JSON for
   * text.
   * @defaultValue ['fetch', 'long-poll']
   */
  transports?: readonly TransportName[] | undefined
  /**
   * Drops the connection while the page is hidden, and catches up when the page is seen again. This saves connections
   * where people keep many tabs, but a hidden page gets no events. A page that the browser keeps for the back button
   * always drops its connection.
   * @defaultValue false: a healthy stream is left alone
   */
  pauseWhenHidden?: boolean | undefined
  /**
   * Shares one connection among all tabs of this browser that have this stream open. One tab reads and passes its
   * events to the others. When that tab is closed, crashes, hangs or is frozen, another tab goes on from its own cursor.
   * Tabs share when their URL, their `identity` and the text given here are the same, so that nobody gets what only
   * another user may read. Give `true` with an `identity`, or the id of the signed-in user here. Without either, tabs
   * share only when their requests carry no credentials: no `token`, `headers` or `fetch`, and no cookies, as with
   * `credentials: 'omit'`. Otherwise that is reported, and each tab reads for itself, as without Web Locks (in a page
   * without HTTPS).
   * @defaultValue none: one connection for each tab, of which HTTP/1.1 allows six
   */
  shareAcrossTabs?: string | true | undefined
  /**
   * Where reconnects are reported: a URL that gets them as a JSON array by POST, or a function. They are sent together
   * once there is a connection again, at most every 30 s, so that the reports do not make an outage worse.
   * @defaultValue nowhere
   */
  reports?: ReconnectReports | undefined
  /**
   * Closes the stream when the signal is aborted, like `close()`.
   * @defaultValue none
   */
  signal?: AbortSignal | undefined
  /**
   * Time and chance, for tests.
   * @defaultValue the clock, the timers and `Math.random` of the platform
   */
  clock?: Clock | undefined
}

export interface ReadOptions {
  /**
   * How `data` is read. Data that was published as text is always a string. Other data that is not JSON goes to
   * `onInvalid`. With 'text', every `data` is a string as it arrived.
   * @defaultValue 'json'
   */
  parse?: 'json' | 'text' | undefined
  /**
   * A schema for each type whose data is to be checked, from any library that follows Standard Schema. Handlers get the
   * output of the schema. Data that the schema rejects goes to `onInvalid`. Later events wait for an async schema.
   * @defaultValue none: data is not checked
   */
  schemas?: Schemas | undefined
  /**
   * How many of the last events `getSnapshot` shows. Only these events stay in memory.
   * @defaultValue 100
   */
  keep?: number | undefined
}
