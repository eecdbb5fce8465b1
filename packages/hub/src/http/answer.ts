import { type CloseReason, type ErrorCode, encodeClose, RejoinError } from '@rejoin/protocol'
import type { Grant } from '../hub/readers/grant.ts'
import type { ReaderRejection } from '../hub/readers/subscribe-request.ts'

/** A response that is not a stream. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export function jsonAnswer(status: number, value: unknown, headers: Record<string, string> = {}): Answer {
  return jsonTextAnswer(status, JSON.stringify(value), headers)
}

/** @param text - a JSON value. */
export function jsonTextAnswer(status: number, text: string, headers: Record<string, string> = {}): Answer {
  return {
    status,
    headers: { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store', ...headers },
    body: `${text}\n`,
  }
}

/** The answer to a request that failed with `error` (§5.7). An error that is not Rejoin's is a 500 without details. */
export function rejection(error: unknown): Answer {
  if (!(error instanceof RejoinError) || error.code === 'internal') {
    return jsonAnswer(500, { error: { code: 'internal', message: failedToAnswer } }, noSniffing)
  }
  const status = statusOf[error.code] ?? 400
  // RFC 9110, section 15.5.2: a 401 names the scheme by which to authenticate.
  const headers: Record<string, string> = { ...noSniffing, ...(status === 401 && { 'WWW-Authenticate': 'Bearer' }) }
  if (soonOver.has(error.code)) headers['Retry-After'] = '1'
  return jsonAnswer(status, { error: { code: error.code, message: error.message } }, headers)
}

/**
 * A failure of the program's own code, as the framework's error handler gets it. An error with a status below 500 stays
 * as it is: errors of `http-errors`, Fastify and Hono are meant to be answered with their status. Any other error becomes the
 * `cause` of an error without details, because the default handlers of frameworks show the message to the requester, and some
 * show the stack. Such an error keeps its status, which an error of an HTTP client has, too.
 */
export function shownError(error: unknown): unknown {
  const { status, statusCode, expose, getResponse } = (error ?? {}) as ErrorWithStatus
  const own = [status, statusCode].find((value) => typeof value === 'number')
  // `http-errors` says by `expose` whether the message may be shown, and the exception of Hono brings its answer along.
  if (own !== undefined && (expose ?? (own < 500 || typeof getResponse === 'function'))) return error
  const hidden = new RejoinError(failedToAnswer, { code: 'internal', cause: error })
  return own === undefined ? hidden : Object.assign(hidden, { status: own, statusCode: own })
}

interface ErrorWithStatus {
  readonly status?: number
  readonly statusCode?: number
  readonly expose?: boolean
  readonly getResponse?: unknown
}

/**
 * For a requester whose rights do not cover the channels that it asks for. A requester without a subject is told that a token
 * may help. The message is the same whether the channel exists or not, so nobody learns which channels exist.
 */
export function notCovered({ subject }: Pick<Grant, 'subject'>): RejoinError {
  if (subject !== null) {
    const message = 'You may not use this channel, or not all of these. Ask the operator for the right.'
    return new RejoinError(message, { code: 'forbidden' })
  }
  return new RejoinError('Requests without a token have no right to this channel, or to one of these. Send a token.', {
    code: 'unauthorized',
  })
}

export function tooLarge(maxBytes: number): RejoinError {
  return new RejoinError(`The body is over ${maxBytes} bytes. Publish a reference to large data instead.`, {
    code: 'too-large',
  })
}

/** For a body that is not complete yet while others need its memory. */
export function bodyEvicted(): RejoinError {
  return new RejoinError('The hub is given more to publish than it has memory for. Send it again in a second.', {
    code: 'overloaded',
    retryable: true,
  })
}

/** For readers that can read a status (§4.12). A native `EventSource` cannot: it returns only after a stream. */
export function readerRejection({ reason, retryMs }: ReaderRejection): Answer {
  return jsonAnswer(
    503,
    { error: readerRejections[reason] ?? noRoom },
    { 'Retry-After': String(Math.ceil(retryMs / 1000)) },
  )
}

/**
 * The headers of a stream (§4.2). A stream for one subject must not be cached for another. All streams share two objects: Node
 * lists the names of a new object anew, which is a third of the time that it takes to write the head.
 */
export function streamHeaders(authenticated: boolean): Readonly<Record<string, string>> {
  return authenticated ? privateStream : sharedStream
}

const sharedStream = headersWith('no-cache, no-transform')
const privateStream = headersWith('private, no-store, no-transform')

function headersWith(cacheControl: string): Readonly<Record<string, string>> {
  return Object.freeze({
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': cacheControl,
    'X-Accel-Buffering': 'no',
    Vary: 'Last-Event-ID, Authorization, Cookie, Origin',
  })
}

/** For all other readers that are rejected for a while: a stream that ends at once, and says when to return. */
export function closedStream(reason: CloseReason, retryMs: number): Answer {
  return { status: 200, headers: streamHeaders(true), body: encodeClose({ reason }, { retryMs }) }
}

// The reason is what `close` would say to a reader that cannot read a status.
const noRoom = {
  code: 'overloaded',
  reason: 'overloaded',
  message: 'The hub has no room for this reader now. Retry-After says when to return.',
}
const readerRejections: Readonly<Record<string, typeof noRoom>> = {
  'too-rapid': {
    ...noRoom,
    message: 'This client returns sooner than it was told, again and again. Retry-After says when to return.',
  },
  drain: { code: 'closed', reason: 'drain', message: 'The server stops. Retry-After says when to ask again.' },
  maintenance: {
    code: 'overloaded',
    reason: 'maintenance',
    message: 'This hub is in maintenance. Retry-After says when to return.',
  },
  'log-unavailable': {
    code: 'log-unavailable',
    reason: 'log-unavailable',
    message: 'The hub hears nothing from its log now. Retry-After says when to return.',
  },
}

/** For a publisher over its rate limit (§5.7). */
export function rateLimited(waitMs: number): Answer {
  const seconds = Math.ceil(waitMs / 1000)
  const message = `You publish too fast. Wait for ${seconds} s, or send batches.`
  return jsonAnswer(429, { error: { code: 'rate-limited', message } }, { 'Retry-After': String(seconds) })
}

/** For a method that the path does not take. `allowed` names the methods that it takes. */
export function wrongMethod(...allowed: readonly string[]): Answer {
  const message = `This path takes ${allowed.join(' and ')} only.`
  const answer = rejection(new RejoinError(message, { code: 'wrong-method' }))
  return { ...answer, headers: { ...answer.headers, Allow: allowed.join(', ') } }
}

/** For a reader that has everything of channels that have all ended (§4.10). An `EventSource` does not return after a 204. */
export const nothingMore: Answer = { status: 204, headers: { 'Cache-Control': 'no-store' }, body: '' }

/** Codes after which the same request may succeed a second later. */
const soonOver: ReadonlySet<ErrorCode> = new Set(['log-unavailable', 'overloaded', 'rate-limited', 'unreachable'])

/** A message repeats text of the request, so a browser must not take the answer for a page. */
const noSniffing = { 'X-Content-Type-Options': 'nosniff' }

const failedToAnswer = 'The hub failed to answer. Its operator can see why.'

const statusOf: Partial<Record<ErrorCode, number>> = {
  'channel-deleted': 410,
  'channel-ended': 409,
  closed: 503,
  forbidden: 403,
  'key-reused': 422,
  'log-unavailable': 503,
  'not-found': 404,
  overloaded: 503,
  'rate-limited': 429,
  'too-large': 413,
  unauthorized: 401,
  unreachable: 503,
  'wrong-method': 405,
}
