import { requestAddress } from './address.ts'
import type { Clock } from './clock.ts'
import type { OpenRequest } from './connection.ts'
import type { Sink } from './transports/transport.ts'

/** Makes one request for a stream, with the cursor and with the headers that the user wants sent. */
export async function sendRequest(
  address: URL,
  request: OpenRequest,
  options: RequestOptions,
  { tell }: Pick<Sink, 'tell'>,
  signal: AbortSignal,
  accept = 'text/event-stream',
): Promise<Response> {
  const { clientId, generation: attempt, cursor } = request
  const { fetch = globalThis.fetch, credentials } = options
  // Not every server numbers its events as a hub does (§2.6): with a control character, no header could carry the id.
  const inHeader = cursor !== null && !request.inQuery && !/[^ -~\u0080-\uffff]/.test(cursor)
  // A hub ends what it still holds of our last connection (§4.13), and turns us away by a status (§4.12).
  const url = requestAddress(address, { clientId, attempt, reject: 'status' }, inHeader ? null : cursor)
  const send: Send = (headers, redirect) => {
    headers.set('Accept', accept)
    // As UTF-8, like a browser's EventSource: fetch takes bytes, one for each character.
    if (inHeader) headers.set('Last-Event-ID', String.fromCharCode(...new TextEncoder().encode(cursor)))
    else headers.delete('Last-Event-ID')
    return fetch(url, { headers, redirect, cache: 'no-store', credentials, signal } as RequestInit)
  }

  if (!options.headers && !options.token) return send(new Headers(), 'follow')
  return (await import('./optional.ts')).sendWithCredentials(send, request, options, tell, signal)
}

export type Send = (headers: Headers, redirect: NonNullable<RequestInit['redirect']>) => Promise<Response>

/** What a server says in the body by which it rejects a request; undefined when that cannot be read. */
export function readMessage(body: Response['body'], type: string, clock: Clock): Promise<string | undefined> {
  // Its code may be gone, as after a deployment.
  return import('./rejection.ts').then(
    (it) => it.readMessage(body, type, clock),
    () => undefined,
  )
}

/** The wait in ms that a `Retry-After` header asks for, as seconds or as a date (RFC 9110 §10.2.3); 0 when it asks none. */
export function readRetryAfter(value: string | null, now: number): number {
  const ms = Number(value) * 1000 || Date.parse(value ?? '') - now
  // Not a number when it is neither, which asks for nothing.
  return Math.max(ms || 0, 0)
}

/** Whether a stream can start from it. */
export function isCursor(id: string): boolean {
  return id !== '' && id.length <= maxCursorLength
}

/** Few servers take more. */
export const maxCursorLength = 8000

// `HeadersInit` and its like have a name in the types of the DOM alone. A program for Node may have these without a name.
type GivenHeaders = NonNullable<RequestInit['headers']>

export interface RequestOptions {
  /**
   * Sent with every request. A function is asked before each attempt and may be async, so that a token is never older
   * than its connection. When it throws or rejects, that is reported and the attempt counts as failed. A redirect is
   * followed without them.
   * @defaultValue none. With any, a browser asks a foreign origin for permission first (CORS preflight).
   */
  headers?: GivenHeaders | ((attempt: Attempt) => GivenHeaders | Promise<GivenHeaders>)
  /**
   * Sent as `Authorization: Bearer …`, under the same rules as `headers`. A function is asked once more when the server
   * has answered 401; a second 401 closes the stream with `unauthorized`. When a hub says how long the rights hold, a
   * function is also asked after nine tenths of that, and after five seconds at the earliest; the stream goes on meanwhile,
   * and then comes back at its cursor with the new token. It may take its time, as for a login: nothing is sent before
   * it has answered.
   * @defaultValue none. `undefined`, `null` and the empty string are no token, also from a function.
   */
  token?: Token | ((attempt: Attempt) => Token | Promise<Token>)
  /**
   * Whether cookies go along, as for `fetch`.
   * @defaultValue 'same-origin'. A foreign origin gets cookies only with 'include'.
   */
  credentials?: NonNullable<RequestInit['credentials']>
  /**
   * Makes the requests, for instance through a proxy or with a log.
   * @defaultValue the global `fetch`, looked up for each request
   */
  fetch?: typeof globalThis.fetch
}

export type Token = string | null | undefined

/** What `headers` and `token` are asked for. */
export interface Attempt {
  /** The server has refused what it was given last, or its time was up: a cached token will not do. */
  readonly refresh: boolean
  /** Aborted when nobody waits for the answer any more: close the login that was opened for it. */
  readonly signal: AbortSignal
}
