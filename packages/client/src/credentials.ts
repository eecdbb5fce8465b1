import type { OpenRequest } from './connection.ts'
import type { Report } from './connection-input.ts'
import { report } from './handler-set.ts'
import type { Attempt, RequestOptions, Send } from './request.ts'
import type { Sink } from './transports/transport.ts'

/** Sends a request with the user's `headers` and `token`. A redirect is followed without them. */
export async function sendWithCredentials(
  send: Send,
  { refresh, renewed }: OpenRequest,
  options: RequestOptions,
  tell: Sink['tell'],
  signal: AbortSignal,
): Promise<Response> {
  tell({ type: 'asking', asking: true })
  const headers =
    renewed ??
    (await userHeaders(options, { refresh, signal }).catch((error) => {
      tell({ type: 'ended', reason: 'no-credentials' })
      throw error
    }))
  tell({ type: 'asking', asking: false })
  return send(headers)
}

/** Asks for the headers of the next connection, while this one goes on. */
export async function renewHeaders(
  options: RequestOptions,
  signal: AbortSignal,
  dispatch: (input: Report, generation: number) => void,
  generation: number,
): Promise<void> {
  // A failure was reported. The stream goes on until the hub ends it; then the headers are asked for again.
  const headers = await userHeaders(options, { refresh: true, signal }).catch(() => undefined)
  if (headers) dispatch({ type: 'renewed', headers }, generation)
}

/** The headers that the user wants sent with one attempt. */
export async function userHeaders({ headers, token }: RequestOptions, attempt: Attempt): Promise<Headers> {
  try {
    const made = new Headers(typeof headers === 'function' ? await headers(attempt) : headers)
    const given = typeof token === 'function' ? await token(attempt) : token
    if (given) made.set('Authorization', `Bearer ${given}`)
    return made
  } catch (error) {
    // The attempt is retried like a network failure, because the source of the token may have been out of reach. The
    // error is also reported: a mistake in the user's code would otherwise look like a server that never answers.
    if (!attempt.signal.aborted) report(error)
    throw error
  }
}
