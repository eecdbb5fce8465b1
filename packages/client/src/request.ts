import { requestAddress } from './address.ts'
import type { OpenRequest } from './connection.ts'
import { report } from './report.ts'
import type { Sink } from './transport.ts'

/**
 * Makes one request for a stream, with the cursor and with what the user wants sent along.
 *
 * A redirect is followed without the user's `headers` and `token`: a browser does not show where it leads, and what is
 * meant for one server must not reach another.
 */
export async function sendRequest(
  address: URL,
  request: OpenRequest,
  options: RequestOptions,
  { tell }: Pick<Sink, 'tell'>,
  signal: AbortSignal,
  accept = 'text/event-stream',
): Promise<Response> {
  const { clientId, generation: attempt, cursor, refresh, renewed } = request
  const { fetch = globalThis.fetch, credentials } = options
  // Not every server numbers its events as a hub does (§2.6): with a control character, no header could carry the id.
  const inHeader = !request.inQuery && !/[^ -~\u0080-\uffff]/.test(cursor ?? '')
  // A hub ends what it still holds of our last connection (§4.13), and turns us away by a status (§4.12).
  const url = requestAddress(address, { clientId, attempt, reject: 'status' }, inHeader ? null : cursor)
  const send = (headers: Headers, redirect: RequestRedirect) => {
    headers.set('Accept', accept)
    // As UTF-8, like a browser's EventSource: fetch takes bytes, one for each character.
    if (cursor !== null && inHeader)
      headers.set('Last-Event-ID', String.fromCharCode(...new TextEncoder().encode(cursor)))
    else headers.delete('Last-Event-ID')
    return fetch(url, { headers, redirect, cache: 'no-store', credentials, signal } as RequestInit)
  }

  if (!options.headers && !options.token) return send(new Headers(), 'follow')
  tell({ type: 'asking', asking: true })
  const headers = renewed ?? (await userHeaders(options, { refresh, signal }))
  tell({ type: 'asking', asking: false })
  const response = await send(headers, 'manual')
  const { status } = response
  // Not a redirect, which a browser shows as status 0. Under 100 it is a part of one, of an answer that was cut off.
  if (status && (status < 300 || status > 399)) return response
  await response.body?.cancel()
  return send(new Headers(), 'follow')
}

/** Whether an id can be sent back: few servers take more than 8,000 characters. */
export function isCursor(id: string): boolean {
  return /^.{1,8000}$/s.test(id)
}

export interface RequestOptions {
  /**
   * Sent with every request. A function is asked before each attempt and may be async, so that a token is never older
   * than its connection. When it throws or rejects, that is reported and the attempt counts as failed. A redirect is
   * followed without them.
   * @defaultValue none. With any, a browser asks a foreign origin for permission first (CORS preflight).
   */
  headers?: HeadersInit | ((attempt: Attempt) => HeadersInit | Promise<HeadersInit>)
  /**
   * Sent as `Authorization: Bearer …`, under the same rules as `headers`. A function is asked once more when the server
   * has answered 401; a second 401 closes the stream with `unauthorized`. When a hub says how long the rights hold, a
   * function is also asked after nine tenths of that; the stream goes on meanwhile, and then comes back at its place with
   * the new token. It may take its time, as for a login: nothing is sent before it has answered.
   * @defaultValue none. `undefined`, `null` and the empty string are no token, also from a function.
   */
  token?: Token | ((attempt: Attempt) => Token | Promise<Token>)
  /**
   * Whether cookies go along, as for `fetch`.
   * @defaultValue 'same-origin'. A foreign origin gets cookies only with 'include'.
   */
  credentials?: RequestCredentials
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

/** The headers that the user wants sent with one attempt. */
export async function userHeaders({ headers, token }: RequestOptions, attempt: Attempt): Promise<Headers> {
  try {
    const made = new Headers(typeof headers === 'function' ? await headers(attempt) : headers)
    const given = typeof token === 'function' ? await token(attempt) : token
    if (given) made.set('Authorization', `Bearer ${given}`)
    return made
  } catch (error) {
    // Retried like a network failure, as a token may have been out of reach; but it may also be a mistake in the user's
    // code, which would otherwise look like a server that never answers.
    if (!attempt.signal.aborted) report(error)
    throw error
  }
}
