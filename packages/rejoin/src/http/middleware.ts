import type { IncomingMessage, ServerResponse } from 'node:http'

/**
 * Answers a request, now or later, and says so; what it leaves goes to the next one. Not by a function to call for that,
 * of which a request would need a new one at every step.
 */
export type Middleware = (request: IncomingMessage, response: ServerResponse) => boolean
