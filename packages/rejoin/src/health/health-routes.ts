import type { Route } from '../http/routes.ts'
import type { Readiness } from './readiness.ts'

/** The routes for load balancers and supervisors. */
export function healthRoutes(readiness: Readiness, version: string): Route[] {
  return [
    {
      method: 'GET',
      path: '/healthz',
      open: 'to-all',
      handle: () => ({ status: 200, body: { status: 'ok', version } }),
    },
    {
      method: 'GET',
      path: '/readyz',
      open: 'to-all',
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
