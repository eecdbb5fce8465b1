import { isLoopbackHost } from '../access/loopback.ts'
import type { Middleware } from '../http/middleware.ts'
import { reject } from '../http/rejection.ts'

/**
 * Guards the admin port, which trusts every program on this machine. A web page in a browser on this machine must not profit from
 * that. So a request has to name this machine as its host, and a page that sends one has to come from this very port.
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
