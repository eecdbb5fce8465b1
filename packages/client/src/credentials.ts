import type { OpenRequest } from './connection.ts'
import { report } from './handler-set.ts'
import type { Attempt, RequestOptions, Send } from './request.ts'
import type { Sink } from './transports/transport.ts'

/**
 * Sends a request with the user's `headers` and `token`.
 *
 * A redirect is followed without them: a browser does not show where it leads, and what is meant for one server must not
 * reach another.
 */
export async function sendWithCredentials(
  send: Send,
  { refresh, renewed }: OpenRequest,
  options: RequestOptions,
  tell: Sink['tell'],
  signal: AbortSignal,
): Promise<Response> {
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
