import { readFileSync } from 'node:fs'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Hub } from '@rejoin/hub'
import { hubEndpoints, targetOf } from '@rejoin/hub/internal'
import { createMaintenance, type RejectedRequest } from '@rejoin/hub/operations'
import { adminGuard, adminTokenCheck } from './admin/admin-guard.ts'
import { adminRoutes } from './admin/admin-routes.ts'
import { inTurn, type Middleware } from './http/chain.ts'
import { pageRoutes } from './http/page-routes.ts'
import { isForRights, rejectionKind } from './http/rejected-requests.ts'
import { reject } from './http/rejection.ts'
import { type Route, serveRoutes } from './http/routes.ts'
import type { Logging } from './logging/logging.ts'
import { createReadiness, healthRoutes } from './monitoring/health.ts'
import { createLiveFigures, type LiveFigures } from './monitoring/live-figures.ts'
import { createMetrics, type Metrics, metricsRoute } from './monitoring/metrics.ts'
import { reconnectReportRoute } from './monitoring/reconnect-reports.ts'

export interface ObservationOptions {
  readonly hub: Hub
  readonly version: string
  readonly logging?: Logging | undefined
  /**
   * Turns on the admin API and the metrics. With a token, every request that carries it may use them, on every port. Without a
   * token, every request on the admin port may.
   * @defaultValue none: there is neither an admin API nor metrics
   */
  readonly admin?: { readonly token?: string | undefined } | undefined
  /**
   * Whether to serve metrics at `/metrics`.
   * @defaultValue true, if there is an admin API
   */
  readonly metrics?: boolean | undefined
  /** Whether `X-Forwarded-For` is believed. */
  readonly trustProxy?: boolean | undefined
  /**
   * The time by the clocks of those who issue tokens, in milliseconds since 1970. A revocation covers tokens up to then.
   * @defaultValue our own time
   */
  readonly issuersNow?: (() => number) | undefined
  /** Further routes, on the public port alone. */
  readonly routes?: readonly Route[] | undefined
}

/** Shows the hub to its operator: health, metrics, the admin API and the dashboard. */
export interface Observation {
  /** Answers the public routes, and with the admin token the routes for admins. Rejects readers during maintenance. */
  readonly middleware: Middleware
  /** Answers all routes, on a port that only this machine reaches. */
  readonly adminHandler: RequestListener
  /** Called when a limit has rejected a request. */
  rejected(kind: string): void
  /** Called when the program has rejected a request before the hub saw it. */
  rejectedRequest(request: RejectedRequest): void
  /** Called when the hub is about to drain. From now on it is not ready. */
  stopping(): void
  /** Ends the streams of the dashboards. */
  close(): Promise<void>
}

export async function createObservation(options: ObservationOptions): Promise<Observation> {
  const { hub, version, logging, admin, trustProxy = false, issuersNow = Date.now } = options
  let metrics: Metrics | undefined
  let figures: LiveFigures | undefined
  const rejected = (kind: string) => {
    metrics?.rejected(kind)
    figures?.rejected(kind)
  }

  const maintenance = createMaintenance(hub, { trustProxy })
  const readiness = createReadiness({ hub, maintenance })

  const routes: Route[] = [
    openApiRoute(),
    ...healthRoutes(readiness, version),
    reconnectReportRoute((report) => {
      logging?.reconnected(report)
      metrics?.reconnected(report)
    }),
  ]
  if (admin) {
    if (options.metrics !== false) {
      metrics = await createMetrics({ hub, readiness, version })
      routes.push(metricsRoute(metrics))
    }
    const administered: Logging['administered'] = (action) => logging?.administered(action)
    routes.push(...adminRoutes({ hub, maintenance, readiness, issuersNow, administered }))
    const state = () => ({ draining: readiness.isStopping, maintenance: maintenance.isOn })
    figures = createLiveFigures(hub, version, state)
    routes.push(figures.route)
  }
  const publicRoutes = options.routes ?? []

  const hasToken = admin?.token === undefined ? undefined : adminTokenCheck(admin.token)
  const serving = { trustProxy, hub }
  const adminPages = pageRoutes({ '/': 'dashboard.html', '/dashboard': 'dashboard.html' })
  const onPublicPort = serveRoutes([...routes, ...publicRoutes], { ...serving, isAdmin: hasToken ?? (() => false) })
  const onAdminPort = serveRoutes([...routes, ...adminPages], { ...serving, isAdmin: hasToken ?? (() => true) })

  /** Counts an answer, whichever part of the program gave it. One function for all requests: a closure for each costs 1 µs. */
  function count(this: ServerResponse): void {
    metrics?.answered(targetOf(this.req).endpoint, this.statusCode)
  }

  return {
    middleware(request, response) {
      if (metrics) response.on('close', count)
      // Almost all requests are for the hub, and no route of the program is below its endpoints.
      return endpointsOfHub.has(targetOf(request).endpoint)
        ? maintenance.rejects(request, response)
        : onPublicPort(request, response)
    },
    adminHandler: inTurn([adminGuard, onAdminPort], nothingHere, hub.port.failed),
    rejected,
    rejectedRequest(request) {
      logging?.rejected(request)
      figures?.listRejected(request)
      if (isForRights(request.reason)) rejected(rejectionKind(request))
    },
    stopping: readiness.stopping,
    close: async () => figures?.close(),
  }
}

const endpointsOfHub: ReadonlySet<string> = new Set(hubEndpoints)

function nothingHere(_request: IncomingMessage, response: ServerResponse): void {
  reject(response, 'not-found', 'Nothing is here. GET /openapi.json lists all paths.')
}

/** `GET /openapi.json`: every path and method of the program, also those that the settings leave out. */
function openApiRoute(): Route {
  const body = readFileSync(new URL('../openapi.json', import.meta.url))
  return { method: 'GET', path: '/openapi.json', open: 'to-all', handle: () => ({ status: 200, body }) }
}
