import type { RequestListener } from 'node:http'
import type { Middleware } from './middleware.ts'
import { rejectError } from './rejection.ts'

/**
 * Hands a request along the chain, and to the last one what nobody has answered. One that throws fails this request alone:
 * a mistake of ours that somebody finds out how to cause must not end the program for all.
 *
 * @param failed - told why, because nobody else will be
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
