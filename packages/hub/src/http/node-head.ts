import type { IncomingMessage } from 'node:http'
import type { RequestHead } from './route.ts'
import { targetOf } from './target.ts'

/** What Node's own request tells of itself. */
export function nodeHead(request: IncomingMessage): Pick<RequestHead, 'method' | 'target' | 'header'> {
  return {
    method: request.method ?? 'GET',
    target: targetOf(request),
    header(name) {
      const value = request.headers[name]
      return Array.isArray(value) ? value.join(', ') : value
    },
  }
}

/** The address that the connection has. A request of HTTP/2 that is over already has no socket any more. */
export function nodeAddress(request: IncomingMessage): string | undefined {
  return request.socket?.remoteAddress
}
