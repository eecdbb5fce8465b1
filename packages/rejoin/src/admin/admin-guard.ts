import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { targetOf } from '@rejoin/hub/internal'
import { RejoinError } from '@rejoin/protocol'
import { isLoopbackHost } from '../access/hosts.ts'
import type { Middleware } from '../http/chain.ts'
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

/**
 * Whether a request carries the admin token, as `Authorization: Bearer`. Digests are compared: they have one length for any
 * token, and the time of the comparison does not tell how much of the token was right.
 */
export function adminTokenCheck(token: string): (request: IncomingMessage) => boolean {
  if (token.length < shortestToken) {
    throw new RejoinError(
      `The admin token has ${token.length} characters. Use at least ${shortestToken}: openssl rand -hex 32 makes a good one.`,
      { code: 'invalid-option' },
    )
  }
  const expected = digestOf(token)
  return ({ headers }) => {
    const sent = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1]
    return sent !== undefined && timingSafeEqual(digestOf(sent), expected)
  }
}

const shortestToken = 16

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** Answers `/dashboard` and `/metrics` on a port that does not serve them with how to open them. */
export function hintAtAdmin(admin: { port?: number | undefined; token?: string | undefined } | undefined): Middleware {
  const off = 'It is off. Start with --admin-port 4748, or set admin.token.'
  const guarded = 'Show the admin token: Authorization: Bearer <admin.token>.'
  const onPort = 'It is on the admin port (admin.port).'
  const advice = admin?.port !== undefined ? onPort : admin?.token !== undefined ? guarded : off
  return (request, response) => {
    const { path } = targetOf(request)
    if (!hinted.has(path)) return false
    reject(response, 'not-found', `There is no ${path} here. ${advice}`)
    return true
  }
}

const hinted = new Set(['/dashboard', '/metrics'])
