/**
 * Parts that not every page needs, in one chunk that is loaded when an option asks for it. The parts are small, and a
 * chunk for each would make `connect` itself larger by the path of that chunk.
 */
export { renewHeaders, sendWithCredentials } from './credentials.ts'
export { prepare } from './preparation.ts'
