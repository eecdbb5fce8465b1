import type { RequestListener } from 'node:http'
import type { Middleware } from './middleware.ts'
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
