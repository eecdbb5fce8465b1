import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Hub } from '@rejoin/hub'
import { addressOf, maxReportBytes, readJson, sendAnswer, type Target, targetOf } from '@rejoin/hub/internal'
import { RejoinError } from '@rejoin/protocol'
import type { Middleware } from './chain.ts'
import { rejectError, rejectMethod } from './rejection.ts'

/** One path and method of the program. */
export interface Route {
  readonly method: 'GET' | 'POST'
  /** The path of the request. A path that ends in `/*` covers every path below it. */
  readonly path: string
  /** Who may use the route: everybody, or only requests with the admin token or on the admin port. */
  readonly open: 'to-all' | 'to-admins'
  handle(call: Call): Result | Promise<Result> | HandOver
}

export interface Call {
  readonly request: IncomingMessage
  readonly path: string
  readonly query: URLSearchParams
  readonly ip: string | null
  readonly userAgent: string | null
  /** Whether the request has the admin token, or came to the admin port. */
  readonly isAdmin: boolean
  /** The JSON in the request's body; null for an empty body. */
  body(): Promise<unknown>
}

export interface Result {
  readonly status: number
  /** Sent as JSON. A string or a `Buffer` is sent as it is, with the `Content-Type` in `headers`. Left out, there is no body. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Passes the response to another function, for example one that streams. */
export interface HandOver {
  readonly handOver: RequestListener
}

export interface RoutesOptions {
  /** Whether a request may use routes for admins. For all other requests such a route does not exist. */
  isAdmin(request: IncomingMessage): boolean
  readonly trustProxy: boolean
  /** Learns of errors that the requester did not cause, and of answers that nobody takes. */
  readonly hub: Pick<Hub, 'port'>
}

/** Answers requests for these routes, and leaves other requests to the next middleware. */
export function serveRoutes(routes: readonly Route[], options: RoutesOptions): Middleware {
  const paths = new Map<string, Route[]>()
  for (const route of routes) paths.set(route.path, [...(paths.get(route.path) ?? []), route])
  const folders = [...paths.keys()].filter((path) => path.endsWith('/*')).map((path) => path.slice(0, -1))

  function routesAt(path: string): Route[] | undefined {
    const folder = folders.find((each) => path.startsWith(each))
    return paths.get(path) ?? (folder === undefined ? undefined : paths.get(`${folder}*`))
  }

  return (request, response) => {
    const target = targetOf(request)
    const here = routesAt(target.path)
    if (!here?.some(({ open }) => open === 'to-all' || options.isAdmin(request))) return false
    const method = request.method === 'HEAD' ? 'GET' : request.method
    const route = here.find((each) => each.method === method)
    if (route) void answer(route, request, response, target)
    else rejectMethod(response, ...here.map((each) => each.method))
    return true
  }

  async function answer(
    route: Route,
    request: IncomingMessage,
    response: ServerResponse,
    { path, query }: Target,
  ): Promise<void> {
    // A requester that leaves before its answer is no failure.
    response.on('error', () => response.destroy())
    try {
      const ip = addressOf(request, options.trustProxy)
      const userAgent = request.headers['user-agent'] ?? null
      const body = () => readJson(request, maxReportBytes)
      const isAdmin = options.isAdmin(request)
      const result = await route.handle({ request, path, query, ip, userAgent, isAdmin, body })
      if ('handOver' in result) result.handOver(request, response)
      else send(options.hub, request, response, result)
    } catch (error) {
      if (response.destroyed) return
      if (!(error instanceof RejoinError)) options.hub.port.failed(error)
      rejectError(response, error)
    }
  }
}

function send(
  hub: Pick<Hub, 'port'>,
  request: IncomingMessage,
  response: ServerResponse,
  { status, body, headers: given }: Result,
): void {
  const headers = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff', ...given }
  if (body === undefined) {
    response.writeHead(status, headers).end()
    return
  }
  sendAnswer(hub, request, response, {
    status,
    headers: { 'Content-Type': 'application/json; charset=utf-8', ...headers },
    body: typeof body === 'string' || Buffer.isBuffer(body) ? body : `${JSON.stringify(body)}\n`,
  })
}
