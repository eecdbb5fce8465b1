import type { OperationDoc } from '../http/openapi.ts'
import type { Route } from '../http/routes.ts'
import type { Metrics } from './metrics.ts'

export function metricsRoute({ registry }: Metrics): Route {
  return {
    method: 'GET',
    path: '/metrics',
    open: 'to-admins',
    doc,
    async handle() {
      return { status: 200, body: await registry.metrics(), headers: { 'Content-Type': registry.contentType } }
    },
  }
}

const doc: OperationDoc = {
  summary: 'The metrics of the program, in the text format of Prometheus',
  answers: {
    200: { description: 'The metrics.', content: { 'text/plain': { schema: { type: 'string' } } } },
  },
}
