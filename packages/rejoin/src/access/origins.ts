import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TLSSocket } from 'node:tls'
import type { Middleware } from '../http/chain.ts'
import { reject } from '../http/rejection.ts'
import { type Credential, credentialOf } from './credential.ts'
import { badRule } from './identity.ts'
import type { AccessRules } from './rules.ts'

/**
 * Lets pages of the hub's own origin and of the listed origins use the hub (CORS). Keeps all other pages from acting with the
 * cookie of their visitor (CSRF). A request with its own token in `Authorization` passes from any page: the token proves the
 * sender.
 */
export function guardOrigins({ cors = [], cookie }: Pick<AccessRules, 'cors' | 'cookie'>): Middleware {
  for (const origin of cors) checkOrigin(origin)
  const listed = new Set(cors)
  const anyPage = listed.delete('*')

  function allowReading(origin: string, response: ServerResponse): void {
    const isListed = listed.has(origin)
    if (!isListed && !anyPage) return
    response.setHeader('Access-Control-Allow-Origin', isListed ? origin : '*')
    response.setHeader('Access-Control-Expose-Headers', 'Retry-After, WWW-Authenticate')
    // Cookies only for listed origins: an operator who set `*` did not choose this page.
    if (isListed && cookie !== undefined) response.setHeader('Access-Control-Allow-Credentials', 'true')
  }

  /** Why a request is rejected; undefined when it is not. */
  function rejectionOf(request: IncomingMessage): string | undefined {
    const { origin, referer, authorization } = request.headers
    if (authorization !== undefined) return undefined
    const source = origin ?? (isSafe(request) ? undefined : originOf(referer))
    if (source !== undefined && (listed.has(source) || isOwn(source, request))) return undefined
    const carrier = carrierOf(request, cookie)
    if (origin === undefined && (carrier !== 'cookie' || isSafe(request))) return undefined
    if (source === undefined) return unknownPage
    if (carrier === 'ticket' || (anyPage && carrier === undefined)) return undefined
    return `Pages of ${JSON.stringify(source.slice(0, 100))} may not use this hub. Its operator can list their origin, or ${hostAdvice}`
  }

  return (request, response) => {
    const { origin } = request.headers
    // `Vary` is set even without an origin: otherwise a cache could give an answer without CORS headers to a page. POST, the most
    // frequent request, does not need it: no cache keeps its answer.
    if (request.method !== 'POST' || origin !== undefined) response.setHeader('Vary', 'Origin')
    if (origin !== undefined) allowReading(origin, response)
    const rejection = rejectionOf(request)
    if (rejection === undefined) return origin !== undefined && answerPreflight(request, response)
    reject(response, 'forbidden', rejection, 'origin')
    return true
  }
}

const hostAdvice = 'let the proxy in front pass on the Host header.'
const unknownPage =
  'A request by cookie has to say what page it is from, and this one has neither Origin nor Referer. Send the token as "Authorization: Bearer" instead.'

function checkOrigin(origin: string): void {
  if (origin === '*' || /^[a-z][a-z0-9+.-]*:\/\/[^/?#@\\\s,*A-Z]+$/.test(origin)) return
  throw badRule(
    `${JSON.stringify(origin)} is no origin of pages. Write it as browsers do, without a path: https://app.example.com`,
  )
}

function isSafe({ method }: IncomingMessage): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
}

function originOf(referer: string | undefined): string | undefined {
  return referer !== undefined && URL.canParse(referer) ? new URL(referer).origin : undefined
}

/** Whether a page was loaded from this hub. Behind a proxy that ends TLS, the hub knows only the host of its own origin. */
function isOwn(origin: string, request: IncomingMessage): boolean {
  const { host = request.headers[':authority'] ?? '' } = request.headers
  const isEncrypted = (request.socket as Partial<TLSSocket>).encrypted === true
  const [, scheme, name] = /^(https?):\/\/([^/?#@\\\s]+)$/.exec(origin) ?? []
  return name !== undefined && name === String(host).toLowerCase() && (scheme === 'https' || !isEncrypted)
}

function carrierOf(request: IncomingMessage, cookie: string | undefined): Credential['from'] | undefined {
  try {
    return credentialOf(request, cookie)?.from
  } catch {
    // An unreadable credential is rejected later, with advice. Until then it counts as a cookie, which may do least.
    return 'cookie'
  }
}

/** Answers the preflight that a browser sends before a page's request; false when the request is no preflight. */
export function answerPreflight(request: IncomingMessage, response: ServerResponse): boolean {
  if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return false
  response.writeHead(204, preflightHeaders).end()
  return true
}

const preflightHeaders = {
  'Access-Control-Allow-Methods': 'GET, POST, DELETE',
  'Access-Control-Allow-Headers': 'Last-Event-ID, Content-Type, Authorization, Cache-Control, Idempotency-Key',
  // Ten minutes: reconnects need no preflight, and a changed rule takes effect soon. Chromium keeps one for two hours at most.
  'Access-Control-Max-Age': '600',
}
