import type { IncomingMessage } from 'node:http'

/** What a request asks for. Not `new URL()`: that throws for targets a client is free to send, `//` for one. */
export function requestTarget(request: IncomingMessage): { path: string; query: URLSearchParams } {
  const target = request.url ?? '/'
  const end = target.indexOf('?')
  return end < 0
    ? { path: target, query: new URLSearchParams() }
    : { path: target.slice(0, end), query: new URLSearchParams(target.slice(end + 1)) }
}
