import type { Route } from '../http/routes.ts'
import type { Metrics } from './metrics.ts'

export function metricsRoute({ registry }: Metrics): Route {
  return {
    method: 'GET',
    path: '/metrics',
    open: 'to-admins',
    async handle() {
      return { status: 200, body: await registry.metrics(), headers: { 'Content-Type': registry.contentType } }
    },
  }
}
