import type { IncomingMessage } from 'node:http'

/** What a request asks for. Not `new URL()`: that throws for targets a client is free to send, `//` for one. */
export function requestTarget(request: Pick<IncomingMessage, 'url'>): RequestTarget {
  const target = request.url ?? '/'
  const end = target.indexOf('?')
  const path = end < 0 ? target : target.slice(0, end)
  // Read by few of those who look at the path, and dear to take apart.
  return { path, query: () => new URLSearchParams(end < 0 ? '' : target.slice(end + 1)) }
}

export interface RequestTarget {
  readonly path: string
  query(): URLSearchParams
}
