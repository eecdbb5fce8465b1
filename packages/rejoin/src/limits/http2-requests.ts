import { constants, type Http2ServerRequest, type Http2ServerResponse, type Http2Session } from 'node:http2'
import type { Rejection } from './options.ts'

type Serve = (request: Http2ServerRequest, response: Http2ServerResponse) => void

/**
 * Serves HTTP/2 requests in a later turn of the event loop, and only those that are still open by then. One packet can open a thousand
 * streams and reset them again (CVE-2023-44487): served at once, each would cost as much as a request that is answered. The work of
 * one turn is bounded by time, so that a packet full of requests delays no one else. A connection that keeps resetting requests before they
 * are served is closed.
 */
export function serveInLaterTurn(serve: Serve, onReject: (kind: Rejection) => void): Serve {
  let waiting: Waiting[] = []
  const resets = new WeakMap<Http2Session, Resets>()

  function serveSome(): void {
    const until = performance.now() + maxTurnMs
    let served = 0
    for (; served < waiting.length && performance.now() < until; served += 1) {
      const { request, response, session } = waiting[served] as Waiting
      if (request.stream.destroyed || request.stream.aborted) countReset(session)
      else serve(request, response)
    }
    waiting = waiting.slice(served)
    if (waiting.length > 0) setImmediate(serveSome)
  }

  function countReset(session: Http2Session | undefined): void {
    if (!session || session.destroyed) return
    const now = performance.now()
    const { count, asOf } = resets.get(session) ?? { count: 0, asOf: now }
    const left = Math.max(0, count - ((now - asOf) / 1000) * forgivenPerSecond) + 1
    resets.set(session, { count: left, asOf: now })
    if (left <= maxResets) return
    onReject('resets')
    session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM)
  }

  return (request, response) => {
    // A stream that is closed knows its session no longer.
    const { session } = request.stream
    if (waiting.push({ request, response, session }) === 1) setImmediate(serveSome)
  }
}

interface Waiting {
  readonly request: Http2ServerRequest
  readonly response: Http2ServerResponse
  readonly session: Http2Session | undefined
}

interface Resets {
  readonly count: number
  readonly asOf: number
}

// As long as a slice of replays.
const maxTurnMs = 5
// A page that is left cancels its requests together. Most of them were served by then, and do not count.
const maxResets = 100
const forgivenPerSecond = 32
