import type { IncomingMessage } from 'node:http'
import type { RequestHead } from './route.ts'

/** What Node's own request tells of itself. */
export function nodeHead(request: IncomingMessage): Pick<RequestHead, 'method' | 'url' | 'header' | 'ip'> {
  return {
    method: request.method ?? 'GET',
    url: request.url ?? '/',
    header(name) {
      const value = request.headers[name]
      return Array.isArray(value) ? value.join(', ') : value
    },
    // One of HTTP/2 that is over already has no socket any more.
    ip: request.socket?.remoteAddress ?? null,
  }
}
