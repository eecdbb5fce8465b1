import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, type Http2ServerRequest, type Http2Session, type ServerHttp2Stream } from 'node:http2'

/**
 * Serves a request of HTTP/2 in a later turn of the event loop, and only if it is still open by then. One packet can open a thousand
 * streams and reset them again (CVE-2023-44487): served at once, each would cost as much as a request that is answered. The work of
 * one turn is bounded by time, so that a packet full of requests delays no one else. A connection that keeps resetting requests
 * before they are served is closed.
 *
 * A request that comes here twice, by a server and by a handler behind it, waits once. A request of HTTP/1 does not wait.
 *
 * @param onReset - called when the connection is closed
 */
export function inLaterTurn(
  request: IncomingMessage,
  response: ServerResponse,
  serve: () => void,
  onReset?: () => void,
): void {
  if (request.httpVersionMajor === 1 || seen.has(response)) {
    serve()
    return
  }
  seen.add(response)
  // A stream that is closed knows its session no longer.
  const { stream } = request as unknown as Http2ServerRequest
  if (waiting.push({ stream, session: stream.session, serve, onReset }) === 1) setImmediate(serveSome)
}

/** A handler for Node's requests that serves those of HTTP/2 in a later turn. */
export function serveInLaterTurn<Call extends [request: IncomingMessage, response: ServerResponse, ...rest: unknown[]]>(
  handler: (...call: Call) => unknown,
): (...call: Call) => void {
  return (...call) => inLaterTurn(call[0], call[1], () => void handler(...call))
}

function serveSome(): void {
  const until = performance.now() + maxTurnMs
  let served = 0
  try {
    while (served < waiting.length && performance.now() < until) {
      const { stream, session, serve, onReset } = waiting[served] as Waiting
      // Before it is served: an error in it may not serve it again.
      served += 1
      if (stream.destroyed || stream.aborted) countReset(session, onReset)
      else serve()
    }
  } finally {
    waiting = waiting.slice(served)
    if (waiting.length > 0) setImmediate(serveSome)
  }
}

function countReset(session: Http2Session | undefined, onReset: (() => void) | undefined): void {
  if (!session || session.destroyed) return
  const now = performance.now()
  const { count, asOf } = resets.get(session) ?? { count: 0, asOf: now }
  const left = Math.max(0, count - ((now - asOf) / 1000) * forgivenPerSecond) + 1
  resets.set(session, { count: left, asOf: now })
  if (left <= maxResets) return
  onReset?.()
  session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM)
}

interface Waiting {
  readonly stream: ServerHttp2Stream
  readonly session: Http2Session | undefined
  serve(): void
  readonly onReset: (() => void) | undefined
}

interface Resets {
  readonly count: number
  readonly asOf: number
}

// One queue for all hubs of a process: their servers share one event loop.
let waiting: Waiting[] = []
const seen = new WeakSet<ServerResponse>()
const resets = new WeakMap<Http2Session, Resets>()
// As long as a slice of replays.
const maxTurnMs = 5
// A page that is left cancels its requests together. Most of them were served by then, and do not count.
const maxResets = 100
const forgivenPerSecond = 32
