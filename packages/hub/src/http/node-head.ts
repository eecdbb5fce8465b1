import type { IncomingMessage } from 'node:http'
import type { RequestHead } from './route.ts'
import { targetOf } from './target.ts'

/** The head of a Node request, as routing needs it. */
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

/** The address of the connection; undefined for an HTTP/2 request that is over, because it has no socket any more. */
export function nodeAddress(request: IncomingMessage): string | undefined {
  return request.socket?.remoteAddress
}
