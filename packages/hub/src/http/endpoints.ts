import type { IncomingMessage } from 'node:http'
import { targetOf } from './target.ts'

/** Endpoints at which readers are served. */
const readerEndpoints = ['events', 'stream', 'poll'] as const

/** Endpoints for publishers: to publish an event, to end a channel, and to delete one (below `channels`). */
const publisherEndpoints = ['publish', 'end', 'channels'] as const

/** All endpoints, for frameworks that register the paths of the hub beforehand. */
export const hubEndpoints = [...readerEndpoints, ...publisherEndpoints] as const

/** Whether a request asks for events, and so comes from a reader. */
export function asksForEvents(request: Pick<IncomingMessage, 'method' | 'url'>): boolean {
  return request.method === 'GET' && isReaderEndpoint(targetOf(request).endpoint)
}

export function isReaderEndpoint(endpoint: string): boolean {
  return (readerEndpoints as readonly string[]).includes(endpoint)
}

export function isPublisherEndpoint(endpoint: string): boolean {
  return (publisherEndpoints as readonly string[]).includes(endpoint)
}
