import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { rejectError } from './rejection.ts'

/**
 * Passes a request along the chain until one middleware answers it, and to `last` if none does. An error fails this request
 * alone: a request that triggers a bug must not end the program.
 *
 * @param failed - called with the error, which is reported nowhere else
 */
export function inTurn(
  chain: readonly Middleware[],
  last: RequestListener,
  failed: (cause: unknown) => void,
): RequestListener {
  return (request, response) => {
    try {
      for (const answers of chain) {
        if (answers(request, response)) return
      }
      last(request, response)
    } catch (error) {
      failed(error)
      if (response.headersSent) response.destroy()
      else rejectError(response, error)
    }
  }
}

/**
 * Returns true when it answers the request, now or later. With false, the request goes to the next middleware. It returns a value
 * instead of calling `next()`, which would need a new closure at every step of every request.
 */
export type Middleware = (request: IncomingMessage, response: ServerResponse) => boolean
