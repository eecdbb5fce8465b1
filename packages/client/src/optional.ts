/**
 * What not every page needs, in one chunk of its own: it is loaded when an option asks for it. Its parts are small,
 * and a chunk for each would make `connect` itself larger, by a path for each.
 */
export { sendWithCredentials, userHeaders } from './credentials.ts'
export { prepare } from './preparation.ts'
