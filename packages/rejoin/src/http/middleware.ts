import type { IncomingMessage, ServerResponse } from 'node:http'

/**
 * Returns true when it answers the request, now or later. With false, the request goes to the next middleware. It returns a value
 * instead of calling `next()`, which would need a new closure at every step of every request.
 */
export type Middleware = (request: IncomingMessage, response: ServerResponse) => boolean
