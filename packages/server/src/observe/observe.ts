import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Hub } from '@rejoin/hub'
import type { Announcer } from '../announce/announcer.ts'
import { inTurn } from '../chain.ts'
import { doorOf, publisherDoors, readerDoors } from '../doors.ts'
import type { Middleware } from '../middleware.ts'
import { pageFiles } from '../page-files.ts'
import { refuse } from '../refusal.ts'
import { adminGuard } from './admin-guard.ts'
import { adminRoutes } from './admin-routes.ts'
import { adminTokenCheck } from './admin-token.ts'
import { healthRoutes } from './health-routes.ts'
import { hubPaths } from './hub-paths.ts'
import { createLiveFigures, type LiveFigures } from './live-figures.ts'
import { createMaintenance } from './maintenance.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { metricsRoute } from './metrics-route.ts'
import { json, type OperationDoc, openApiDocument, type PathDocs } from './openapi.ts'
import { createReadiness } from './readiness.ts'
import { reconnectReportRoute } from './reconnect-reports.ts'
import { type Route, serveRoutes } from './routes.ts'

export interface ObservationOptions {
  readonly hub: Hub
  readonly version: string
  readonly announcer?: Announcer | undefined
  /**
   * Left out, there is neither an admin API nor metrics. With a token, whoever has it may use them, on every port; without
   * one, whoever reaches the admin port may.
   */
  readonly admin?: { readonly token?: string | undefined } | undefined
  /** @defaultValue true, where there is an admin API */
  readonly metrics?: boolean | undefined
  /** Whether `X-Forwarded-For` may be believed. */
  readonly trustProxy?: boolean | undefined
  /** What else is answered on the public port, for `openapi.json`. */
  readonly paths?: PathDocs | undefined
}

/** What shows the hub to those who run it. */
export interface Observation {
  /** Answers what everybody may ask, and what admins may who show their token; turns readers away during maintenance. */
  readonly middleware: Middleware
  /** Answers everything, on a port that only this machine reaches. */
  readonly adminHandler: RequestListener
  /** A limit has turned somebody away. */
  rejected(kind: string): void
  /** The hub is about to be drained: from now on it is not ready. */
  stopping(): void
  /** Ends the streams of those who look on. */
  close(): Promise<void>
}

export async function createObservation(options: ObservationOptions): Promise<Observation> {
  const { hub, version, announcer, admin, trustProxy = false } = options
  let metrics: Metrics | undefined
  let figures: LiveFigures | undefined
  const rejected = (kind: string) => metrics?.rejected(kind)

  const maintenance = createMaintenance(() => rejected('maintenance'))
  const readiness = createReadiness({ hub, maintenance })

  const routes: Route[] = [
    ...healthRoutes(readiness, version),
    reconnectReportRoute((report) => {
      announcer?.reconnected(report)
      metrics?.reconnected(report)
    }),
  ]
  if (admin) {
    if (options.metrics !== false) {
      metrics = await createMetrics({ hub, readiness, version })
      routes.push(metricsRoute(metrics))
    }
    const administered: Announcer['administered'] = (action) => announcer?.administered(action)
    routes.push(...adminRoutes({ hub, maintenance, readiness, administered }))
    figures = createLiveFigures(hub, version)
    routes.push(figures.route)
  }
  routes.push(openApiRoute(routes, { ...hubPaths(), ...options.paths }, version))

  const hasToken = admin?.token === undefined ? undefined : adminTokenCheck(admin.token)
  const serving = { trustProxy, failed: hub.failed }
  const onPublicPort = serveRoutes(routes, { ...serving, isAdmin: hasToken ?? (() => false) })
  const onAdminPort = serveRoutes(routes, { ...serving, isAdmin: hasToken ?? (() => true) })
  const adminPages = pageFiles({ '/': 'dashboard.html', '/dashboard': 'dashboard.html' })

  /** The answer is over, whoever has given it. One function for all: a new one for each request would cost 1 µs. */
  function count(this: ServerResponse): void {
    metrics?.answered(doorOf(this.req), this.statusCode)
  }

  return {
    middleware(request, response) {
      if (metrics) response.on('close', count)
      // Almost all requests are the hub's, and no route of ours is under its paths.
      return hubDoors.has(doorOf(request)) ? maintenance.middleware(request, response) : onPublicPort(request, response)
    },
    adminHandler: inTurn([adminGuard, onAdminPort, adminPages], nothingHere, hub.failed),
    rejected,
    stopping: readiness.stopping,
    close: async () => figures?.close(),
  }
}

function openApiRoute(routes: readonly Route[], others: PathDocs, version: string): Route {
  const route: Route = {
    ...{ method: 'GET', path: '/openapi.json', open: 'to-all', doc: openApiDoc },
    handle: () => ({ status: 200, body: document }),
  }
  const document = openApiDocument([...routes, route], others, version)
  return route
}

const hubDoors: ReadonlySet<string> = new Set([...readerDoors, ...publisherDoors])

const openApiDoc: OperationDoc = {
  summary: 'This document',
  answers: { 200: json('Every path and method of this program.', { type: 'object' }) },
}

function nothingHere(_request: IncomingMessage, response: ServerResponse): void {
  refuse(response, 404, 'not-found', 'Nothing is here. GET /openapi.json lists what is.')
}
