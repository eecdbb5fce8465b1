import { isLoopbackHost } from '../access/loopback.ts'
import type { Middleware } from '../http/middleware.ts'
import { reject } from '../http/rejection.ts'

/**
 * For the admin port, where being on this machine is all the proof that is asked for: a web page must not borrow it. So
 * requests are answered only when they name this machine, and a page that sends one is of this very port.
 */
export const adminGuard: Middleware = (request, response) => {
  const { host, origin } = request.headers
  if (!isLoopbackHost(host)) {
    reject(response, 'forbidden', 'Address the admin port as localhost or 127.0.0.1.')
  } else if (origin !== undefined && origin !== `http://${host}`) {
    reject(response, 'forbidden', 'Web pages may not use the admin port.')
  } else {
    return false
  }
  return true
}
