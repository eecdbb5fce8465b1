import { requestAddress } from './address.ts'
import type { OpenRequest } from './connection.ts'
import type { Answer } from './connection-input.ts'
import type { Sink, TransportParts } from './transports/transport.ts'

/**
 * Makes one request for a stream, with the cursor and the user's headers, and reads the head of the response.
 *
 * @param essence - the content type to ask for
 */
export async function sendRequest(
  [address, options, clock]: TransportParts,
  request: OpenRequest,
  { tell }: Pick<Sink, 'tell'>,
  signal: AbortSignal,
  essence: string,
): Promise<Answered> {
  const { clientId, generation: attempt, cursor } = request
  const { fetch = globalThis.fetch, credentials } = options
  // A server that is no hub may use ids with control characters (§2.6), which no header can carry.
  let inHeader = cursor && !request.inQuery && !/[^ -~\u0080-\uffff]/.test(cursor)
  const send: Send = (headers, redirect = 'manual') => {
    headers.set('Accept', essence)
    // As UTF-8, like a browser's EventSource: `fetch` takes one character for each byte.
    if (inHeader) headers.set('Last-Event-ID', String.fromCharCode(...new TextEncoder().encode(cursor!)))
    else headers.delete('Last-Event-ID')
    // By these parameters, a hub ends what it still holds of the client's last connection (§4.13), and rejects with a
    // status (§4.12).
    const url = requestAddress(address, { clientId, attempt, reject: 'status' }, inHeader ? null : cursor)
    const init = { headers, redirect, cache: 'no-store', credentials, signal } as RequestInit
    return fetch(url, init).catch((error) => {
      // A browser asks another origin for permission to send this header, and not every server answers. A hub does.
      if (!inHeader || request.isHub || url.origin === (globalThis.location ?? url).origin) throw error
      inHeader = false
      return send(headers, redirect)
    })
  }

  const response = await (options.headers || options.token
    ? optional().then((it) => it.sendWithCredentials(send, request, options, tell, signal))
    : send(new Headers()))
  const { status, headers, body } = response
  const isStream = status === 200 && headers.get('content-type')?.split(';')[0] === essence
  const answer = { status, isStream, retryAfterMs: Number(headers.get('retry-after')) * 1000 || 0 }
  const answered = { body, answer }
  if (isStream) return answered
  return import('./rejection.ts').then(
    (it) => it.readAnswer(response, essence, clock, send),
    // The chunk may be gone after a deployment.
    () => (status > 399 ? answered : { body }),
  )
}

/** What only some pages need. */
export function optional(): Promise<typeof import('./optional.ts')> {
  return import('./optional.ts')
}

export interface Answered {
  readonly body: Response['body']
  /** Undefined when the connection was cut within the head. */
  readonly answer?: Answer
}

/** @param redirect - 'manual' unless it is given: credentials for one server must not reach another. */
export type Send = (headers: Headers, redirect?: NonNullable<RequestInit['redirect']>) => Promise<Response>

/** Whether a stream can start from this id. */
export function isCursor(id: string): boolean {
  return id !== '' && id.length <= maxCursorLength
}

/** Few servers accept longer headers. */
export const maxCursorLength = 8000

// Only the types of the DOM name `HeadersInit`. This way, a program with the types of Node alone compiles too.
type GivenHeaders = NonNullable<RequestInit['headers']>

export interface RequestOptions {
  /**
   * Sent with every request. A function is called before each attempt and may be async, so that credentials are never
   * older than their connection. When it throws or rejects, the error is reported and the attempt counts as failed.
   * Redirects are followed without these headers.
   * @defaultValue none. With any header, a browser first asks another origin for permission (CORS preflight).
   */
  headers?: GivenHeaders | ((attempt: Attempt) => GivenHeaders | Promise<GivenHeaders>) | undefined
  /**
   * Sent as `Authorization: Bearer …`, under the same rules as `headers`. A function is called again after a 401; a
   * second 401 closes the stream with `unauthorized`. When the hub says how long the rights hold, a function is also
   * called after nine tenths of that time, at the earliest after five seconds. The stream goes on until the function
   * answers, and then reconnects from its cursor with the new token. A function may take its time, as for a login: no
   * request is sent before it answers.
   * @defaultValue none. `undefined`, `null` and the empty string are no token, also from a function.
   */
  token?: Token | ((attempt: Attempt) => Token | Promise<Token>) | undefined
  /**
   * Whether cookies are sent, as for `fetch`.
   * @defaultValue 'same-origin'. Another origin gets cookies only with 'include'.
   */
  credentials?: NonNullable<RequestInit['credentials']> | undefined
  /**
   * Makes the requests, for example through a proxy or with logging.
   * @defaultValue the global `fetch`, looked up for each request
   */
  fetch?: typeof globalThis.fetch | undefined
}

export type Token = string | null | undefined

/** The argument of a function in `headers` or `token`. */
export interface Attempt {
  /** The server rejected the last credentials, or they have expired or soon will: do not return a cached token. */
  readonly refresh: boolean
  /** Aborted when the answer is no longer needed: close a login that was opened for it. */
  readonly signal: AbortSignal
}
