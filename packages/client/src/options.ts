import type { Clock } from './clock.ts'
import type { RequestHeaders } from './fetch-transport.ts'

export interface ConnectOptions {
  /**
   * Sent with every request. A function is asked before each attempt and may be async, so that a token is never older
   * than its connection. When it throws or rejects, that is reported and the attempt counts as failed.
   * @defaultValue none. With any, a browser asks a foreign origin for permission first (CORS preflight).
   */
  headers?: RequestHeaders
  /**
   * Whether cookies go along, as for `fetch`.
   * @defaultValue 'same-origin'. A foreign origin gets cookies only with 'include'.
   */
  credentials?: RequestCredentials
  /**
   * How `data` is read. What is not JSON goes to `onInvalid`; with 'text', nothing is read and every `data` is a string.
   * @defaultValue 'json'
   */
  parse?: 'json' | 'text'
  /**
   * The cursor to start from, such as the `cursor` of an earlier stream: everything after it is delivered first.
   * @defaultValue none: the stream starts with what happens next
   */
  from?: string | null
  /**
   * The shortest wait before a retry, and what is doubled for each further one, in ms. A longer `retry:` of the server
   * takes its place. Smaller comes back sooner, and asks a server that is down more often.
   * @defaultValue 500
   */
  retryMs?: number
  /**
   * The longest wait before a retry, in ms, whatever the server asks; up to a tenth is added to a wait that a server
   * has made this long, so that its clients do not come back together.
   * @defaultValue 30 000
   */
  maxRetryMs?: number
  /**
   * Retries in a row that may fail before the stream closes with `too-many-retries`. A stream that was good for five
   * seconds starts the count again.
   * @defaultValue Infinity: a laptop that was shut for a weekend continues where it was
   */
  maxRetries?: number
  /**
   * Makes the requests, for instance through a proxy or with a log.
   * @defaultValue the global `fetch`, looked up when `connect` is called
   */
  fetch?: typeof globalThis.fetch
  /**
   * Time and chance, for tests.
   * @defaultValue those of the platform
   */
  clock?: Clock
}
