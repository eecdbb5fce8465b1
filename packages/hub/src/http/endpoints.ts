/** Endpoints at which readers are served. */
const readerEndpoints = ['events', 'stream', 'poll'] as const

/** Endpoints for publishers: to publish an event, to end a channel, and to delete one (below `channels`). */
const publisherEndpoints = ['publish', 'end', 'channels'] as const

/** All endpoints, for frameworks that register the paths of the hub beforehand. */
export const hubEndpoints = [...readerEndpoints, ...publisherEndpoints] as const

export function isReaderEndpoint(endpoint: string): boolean {
  return endpoint === 'events' || endpoint === 'stream' || endpoint === 'poll'
}

export function isPublisherEndpoint(endpoint: string): boolean {
  return endpoint === 'publish' || endpoint === 'end' || endpoint === 'channels'
}
