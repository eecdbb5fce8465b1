import { json, type OperationDoc } from './openapi.ts'
import type { Readiness } from './readiness.ts'
import type { Route } from './routes.ts'

/** What load balancers and supervisors ask. */
export function healthRoutes(readiness: Readiness, version: string): Route[] {
  return [
    {
      ...{ method: 'GET', path: '/healthz', open: 'to-all', doc: healthDoc },
      handle: () => ({ status: 200, body: { status: 'ok', version } }),
    },
    {
      ...{ method: 'GET', path: '/readyz', open: 'to-all', doc: readyDoc },
      async handle() {
        const { ready, checks } = await readiness.check()
        return { status: ready ? 200 : 503, body: { status: ready ? 'ready' : 'not-ready', checks } }
      },
    },
  ]
}

const healthDoc: OperationDoc = {
  summary: 'Whether the program runs',
  answers: {
    200: json('It does.', {
      type: 'object',
      required: ['status', 'version'],
      properties: { status: { const: 'ok' }, version: { type: 'string' } },
    }),
  },
}

const readyAnswer = {
  type: 'object',
  required: ['status', 'checks'],
  properties: {
    status: { enum: ['ready', 'not-ready'] },
    checks: {
      type: 'object',
      description: 'By what was looked at: `ok`, or what is wrong with it.',
      properties: {
        log: { type: 'string' },
        stopping: { type: 'string' },
        maintenance: { type: 'string' },
      },
    },
  },
}

const readyDoc: OperationDoc = {
  summary: 'Whether readers and publishers should be sent here now',
  answers: { 200: json('They should.', readyAnswer), 503: json('They should be sent elsewhere.', readyAnswer) },
}
