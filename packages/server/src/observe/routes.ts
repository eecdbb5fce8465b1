import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { type ErrorCode, RejoinError } from '@rejoin/protocol'
import type { Middleware } from '../middleware.ts'
import { refuse, refuseMethod } from '../refusal.ts'
import { requestTarget } from '../request-target.ts'
import { readJson } from './json-body.ts'
import type { OperationDoc } from './openapi.ts'
import { peerAddress } from './peer-address.ts'

/** One path and method of the program, with what `openapi.json` says of it. */
export interface Route {
  readonly method: 'GET' | 'POST'
  /** As it stands in the request: these have no parameters in their paths. */
  readonly path: string
  /** Who may use it: everybody, or those who have the admin token or the admin port. */
  readonly open: 'to-all' | 'to-admins'
  readonly doc: OperationDoc
  handle(call: Call): Result | Promise<Result> | HandOver
}

export interface Call {
  readonly query: URLSearchParams
  readonly ip: string | null
  readonly userAgent: string | null
  /** The JSON that was sent, null for none. */
  body(): Promise<unknown>
}

export interface Result {
  readonly status: number
  /** Sent as JSON; a string is sent as it is, under `headers`' own `Content-Type`. Left out, there is no body. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Lets another answer, with a stream for one. */
export interface HandOver {
  readonly handOver: RequestListener
}

export interface RoutesOptions {
  /** Whether a request may use what is open to admins. To others such a path does not exist. */
  isAdmin(request: IncomingMessage): boolean
  readonly trustProxy: boolean
  /** Told of what no caller could be blamed for. */
  failed(cause: unknown): void
}

/** Answers what is in the table and leaves the rest to the next. */
export function serveRoutes(routes: readonly Route[], options: RoutesOptions): Middleware {
  const paths = new Map<string, Route[]>()
  for (const route of routes) paths.set(route.path, [...(paths.get(route.path) ?? []), route])

  return (request, response) => {
    const target = requestTarget(request)
    const here = paths.get(target.path)
    if (!here?.some(({ open }) => open === 'to-all' || options.isAdmin(request))) return false
    const method = request.method === 'HEAD' ? 'GET' : request.method
    const route = here.find((each) => each.method === method)
    if (route) void answer(route, request, response, target.query())
    else refuseMethod(response, ...here.map((each) => each.method))
    return true
  }

  async function answer(
    route: Route,
    request: IncomingMessage,
    response: ServerResponse,
    query: URLSearchParams,
  ): Promise<void> {
    // Whoever goes while it is answered is not worth a word.
    response.on('error', () => response.destroy())
    try {
      const ip = peerAddress(request, options.trustProxy)
      const userAgent = request.headers['user-agent'] ?? null
      const result = await route.handle({ query, ip, userAgent, body: () => readJson(request, maxBodyBytes) })
      if ('handOver' in result) result.handOver(request, response)
      else send(response, result)
    } catch (error) {
      if (response.destroyed) return
      if (error instanceof RejoinError) {
        refuse(response, statusOf[error.code] ?? 400, error.code, error.message)
      } else {
        options.failed(error)
        refuse(response, 500, 'internal', 'The hub failed to answer. Its operator can see why.')
      }
    }
  }
}

/** A client reports a hundred reconnects at most, of some 200 bytes each. */
export const maxBodyBytes = 64 * 1024

function send(response: ServerResponse, { status, body, headers }: Result): void {
  const text = typeof body === 'string' ? body : `${JSON.stringify(body)}\n`
  const type = body === undefined ? {} : { 'Content-Type': 'application/json; charset=utf-8' }
  response.writeHead(status, { ...type, 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff', ...headers })
  response.end(body === undefined ? undefined : text)
}

const statusOf: Partial<Record<ErrorCode, number>> = {
  closed: 503,
  'log-unavailable': 503,
  'not-found': 404,
  overloaded: 429,
  'too-large': 413,
}
