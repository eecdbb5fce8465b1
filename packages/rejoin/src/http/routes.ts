import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { addressOf, maxReportBytes, readJson, type Target, targetOf } from '@rejoin/hub/internal'
import { RejoinError } from '@rejoin/protocol'
import type { Middleware } from './middleware.ts'
import type { OperationDoc } from './openapi.ts'
import { rejectError, rejectMethod } from './rejection.ts'

/** One path and method of the program, with its part of `openapi.json`. */
export interface Route {
  readonly method: 'GET' | 'POST'
  /** The path as it stands in the request. One that ends in `/*` stands for every path below it. */
  readonly path: string
  /** Who may use it: everybody, or requesters that have the admin token or the admin port. */
  readonly open: 'to-all' | 'to-admins'
  /** Left out of `openapi.json` when it has none: pages and the playground are no API. */
  readonly doc?: OperationDoc
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
  /** The JSON that was sent, null for none. */
  body(): Promise<unknown>
}

export interface Result {
  readonly status: number
  /** Sent as JSON; a string or bytes are sent as they are, under the `Content-Type` of `headers`. Left out, there is no body. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Leaves the response to another function, for example one that streams. */
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
    // Whoever goes while it is answered is not worth a word.
    response.on('error', () => response.destroy())
    try {
      const ip = addressOf(request, options.trustProxy)
      const userAgent = request.headers['user-agent'] ?? null
      const body = () => readJson(request, maxReportBytes)
      const isAdmin = options.isAdmin(request)
      const result = await route.handle({ request, path, query, ip, userAgent, isAdmin, body })
      if ('handOver' in result) result.handOver(request, response)
      else send(response, result)
    } catch (error) {
      if (response.destroyed) return
      if (!(error instanceof RejoinError)) options.failed(error)
      rejectError(response, error)
    }
  }
}

function send(response: ServerResponse, { status, body, headers }: Result): void {
  const type = body === undefined ? {} : { 'Content-Type': 'application/json; charset=utf-8' }
  response.writeHead(status, { ...type, 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff', ...headers })
  if (body === undefined) response.end()
  else response.end(typeof body === 'string' || Buffer.isBuffer(body) ? body : `${JSON.stringify(body)}\n`)
}
