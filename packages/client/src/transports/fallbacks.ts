/**
 * The transports that stand in for `fetch`, by the names that users give them. One chunk for both, loaded when one of them is
 * needed: a chunk for each would make `connect` itself larger, by a path for each.
 */
export { createTransport as 'event-source' } from './event-source.ts'
export { createTransport as 'long-poll' } from './long-poll.ts'
