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
      description: 'By what was looked at: `ok`, or what is wrong with it. Only admins get the reason of `log`.',
      properties: {
        log: { type: 'string' },
        stopping: { type: 'string' },
        maintenance: { type: 'string' },
      },
    },
    budget: {
      type: 'object',
      description: 'What all channels hold together, and may hold. Only where `logMaxBytes` is set.',
      required: ['usedBytes', 'maxBytes'],
      properties: { usedBytes: { type: 'number' }, maxBytes: { type: 'number' } },
    },
  },
}

const readyDoc: OperationDoc = {
  summary: 'Whether readers and publishers should be sent here now',
  answers: { 200: json('They should.', readyAnswer), 503: json('They should be sent elsewhere.', readyAnswer) },
}
