import type { Clock } from './clock.ts'
import type { FetchOptions } from './fetch-transport.ts'

export interface ConnectOptions extends FetchOptions {
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
   * Time and chance, for tests.
   * @defaultValue those of the platform
   */
  clock?: Clock
}
