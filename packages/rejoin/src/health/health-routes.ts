import { json, type OperationDoc } from '../http/openapi.ts'
import type { Route } from '../http/routes.ts'
import type { Readiness } from './readiness.ts'

/** The routes for load balancers and supervisors. */
export function healthRoutes(readiness: Readiness, version: string): Route[] {
  return [
    {
      method: 'GET',
      path: '/healthz',
      open: 'to-all',
      doc: healthDoc,
      handle: () => ({ status: 200, body: { status: 'ok', version } }),
    },
    {
      method: 'GET',
      path: '/readyz',
      open: 'to-all',
      doc: readyDoc,
      async handle({ isAdmin }) {
        const { ready, checks, reason, budget } = await readiness.check()
        // For admins only, because the reason can name a folder or the address of a Redis.
        const told = isAdmin && reason !== undefined ? { ...checks, log: reason } : checks
        const body = { status: ready ? 'ready' : 'not-ready', checks: told, ...(budget && { budget }) }
        return { status: ready ? 200 : 503, body }
      },
    },
  ]
}

const healthDoc: OperationDoc = {
  summary: 'Whether the program runs',
  answers: {
    200: json('The program runs.', {
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
      description: 'The result of each check: `ok`, or what is wrong. Only admins are told why `log` failed.',
      properties: {
        log: { type: 'string' },
        stopping: { type: 'string' },
        maintenance: { type: 'string' },
      },
    },
    budget: {
      type: 'object',
      description:
        'How many bytes all channels hold together, and how many they may hold. Only if `logMaxBytes` is set.',
      required: ['usedBytes', 'maxBytes'],
      properties: { usedBytes: { type: 'number' }, maxBytes: { type: 'number' } },
    },
  },
}

const readyDoc: OperationDoc = {
  summary: 'Whether a load balancer should send readers and publishers to this hub',
  answers: {
    200: json('This hub is ready.', readyAnswer),
    503: json('This hub is not ready: send readers and publishers to another hub.', readyAnswer),
  },
}
