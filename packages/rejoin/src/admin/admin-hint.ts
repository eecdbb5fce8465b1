import { targetOf } from '@rejoin/hub/internal'
import type { Middleware } from '../http/middleware.ts'
import { reject } from '../http/rejection.ts'

/** Answers `/dashboard` and `/metrics` on a port that does not serve them with how to open them. */
export function hintAtAdmin(admin: { port?: number | undefined; token?: string | undefined } | undefined): Middleware {
  const off = 'It is off. Start with --admin-port 4748, or set admin.token.'
  const guarded = 'Show the admin token: Authorization: Bearer <admin.token>.'
  const onPort = 'It is on the admin port (admin.port).'
  const advice = admin?.port !== undefined ? onPort : admin?.token !== undefined ? guarded : off
  return (request, response) => {
    const { path } = targetOf(request)
    if (!hinted.has(path)) return false
    reject(response, 'not-found', `There is no ${path} here. ${advice}`)
    return true
  }
}

const hinted = new Set(['/dashboard', '/metrics'])
