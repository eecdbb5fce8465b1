/** The endpoints of the hub: the first segments of its paths, by what a request wants there. */
const readerEndpoints = ['events', 'stream', 'poll'] as const

/** Events come in here. To end a channel is to publish its last event; to delete it, below `channels`, ends it as well. */
const publisherEndpoints = ['publish', 'end', 'channels'] as const

/** For frameworks that want to know the paths of the hub beforehand. */
export const hubEndpoints = [...readerEndpoints, ...publisherEndpoints] as const

/** Whether readers are served at this endpoint. */
export function isReaderEndpoint(endpoint: string): boolean {
  return endpoint === 'events' || endpoint === 'stream' || endpoint === 'poll'
}

/** Whether publishers are served at this endpoint. */
export function isPublisherEndpoint(endpoint: string): boolean {
  return endpoint === 'publish' || endpoint === 'end' || endpoint === 'channels'
}
