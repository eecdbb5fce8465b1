import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2'
import type { Rejection } from './options.ts'

/**
 * Gives an HTTP/2 connection the deadlines that Node has for HTTP/1 only. A connection without a request is closed, and so is a
 * request whose body does not arrive.
 */
export function limitSession(session: ServerHttp2Session, limits: SessionLimits): void {
  const { headersTimeoutMs, requestTimeoutMs, isCrowded, onReject } = limits
  let open = 0
  let idle: NodeJS.Timeout | undefined

  function wait(ms: number): void {
    // This also stops a head that comes byte by byte: it is no stream until it is whole.
    idle = setTimeout(() => session.destroy(), ms).unref()
  }

  session.on('stream', (stream: ServerHttp2Stream) => {
    open += 1
    clearTimeout(idle)
    limitBody(stream)
    stream.once('close', () => {
      open -= 1
      if (open > 0 || session.destroyed) return
      // Other clients wait for a connection.
      if (isCrowded()) session.close()
      else wait(Math.max(headersTimeoutMs, keepAliveMs))
    })
  })
  session.once('close', () => clearTimeout(idle))
  wait(headersTimeoutMs)

  function limitBody(stream: ServerHttp2Stream): void {
    if (stream.endAfterHeaders) return
    const late = setTimeout(() => {
      onReject('deadline')
      stream.close()
    }, requestTimeoutMs).unref()
    const done = () => clearTimeout(late)
    stream.once('end', done)
    stream.once('close', done)
  }
}

export interface SessionLimits {
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
  isCrowded(): boolean
  onReject(kind: Rejection): void
}

// A page that polls, or that has lost one stream, returns within this time and needs no new handshake.
const keepAliveMs = 60_000
