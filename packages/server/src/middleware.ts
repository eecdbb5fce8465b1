import type { IncomingMessage, ServerResponse } from 'node:http'

/** Answers a request, or leaves it to the next one by calling `next`, in the same turn, and never both. */
export type Middleware = (request: IncomingMessage, response: ServerResponse, next: () => void) => void
