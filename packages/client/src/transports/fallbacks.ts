/**
 * The transports that replace `fetch` when it fails, by the names that users give them. They share one chunk, loaded
 * when one of them is needed: a chunk for each would make `connect` itself larger by the path of that chunk.
 */
export { createTransport as 'event-source' } from './event-source.ts'
export { createTransport as 'long-poll' } from './long-poll.ts'
