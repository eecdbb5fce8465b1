import type { Hub } from '@rejoin/hub'
import { limitOf, selectorOf } from '@rejoin/hub/internal'
import { type Maintenance, sseState } from '@rejoin/hub/operations'
import { RejoinError } from '@rejoin/protocol'
import * as v from 'valibot'
import { invalidData } from '../errors.ts'
import type { Result, Route } from '../http/routes.ts'
import type { AdminAction } from '../logging/logging.ts'
import type { Readiness } from '../monitoring/health.ts'
import { disconnectBody, drainBody, idsBody, invalidateBody, maintenanceBody, revokeBody } from './admin-bodies.ts'
import { listConnections } from './connections.ts'
import { idFormatsOf, switchIds } from './id-switch.ts'

export interface AdminOptions {
  readonly hub: Hub
  readonly maintenance: Maintenance
  readonly readiness: Pick<Readiness, 'stopping'>
  /** The time by the clocks of those who issue tokens, in milliseconds since 1970. */
  issuersNow(): number
  /** Called for every change that an operator makes. */
  administered(action: AdminAction): void
}

/** The routes by which an operator looks at the hub and changes it. */
export function adminRoutes(options: AdminOptions): Route[] {
  const { hub, maintenance, readiness, issuersNow, administered } = options

  const view = (path: string, handle: Route['handle']): Route => ({
    method: 'GET',
    path,
    open: 'to-admins',
    handle,
  })

  /** The route of a change. The program is told of the change and its target before the request is answered. */
  function act<S extends v.GenericSchema>(
    action: string,
    schema: S,
    change: (body: v.InferOutput<S>) => Change | Promise<Change>,
  ): Route {
    return {
      method: 'POST',
      path: `/admin/${action}`,
      open: 'to-admins',
      async handle({ ip, body }) {
        const { target, isDry, ...result } = await change(checkedBody(schema, objectOf(await body())))
        if (!isDry) administered({ action, ip, ...(target === undefined ? {} : { target }) })
        return result
      },
    }
  }

  return [
    view('/admin/channels', async ({ query }) => {
      const limit = limitOf(query)
      const [prefix, after] = [query.get('prefix') ?? '', query.get('after') ?? '']
      const channels = await hub.admin.channels({ prefix, after, limit })
      return ok({ channels, next: channels.length === limit ? (channels.at(-1)?.channel ?? null) : null })
    }),

    view('/admin/connections', ({ query }) => {
      const limit = limitOf(query)
      const [subject, channel] = [query.get('subject'), query.get('channel')]
      const page = listConnections(hub.admin, {
        after: query.get('after') ?? '',
        limit,
        ...(subject === null ? {} : { subject }),
        ...(channel === null ? {} : { channel }),
      })
      return ok(page)
    }),

    view('/debug/sse-state', async (call) => {
      return ok(await sseState(hub, selectorOf(call.query), { limit: limitOf(call.query) }))
    }),

    act('disconnect', disconnectBody, async ({ connection, subject }) => {
      const who = connection === undefined ? { subject: subject as string } : { connection }
      const outcome = await hub.admin.disconnect(who)
      return { ...ok(outcome), target: (connection ?? subject) as string }
    }),

    act('invalidate', invalidateBody, async ({ channel }) => {
      await hub.invalidate(channel)
      return { ...ok({ invalidated: channel }), target: channel }
    }),

    act('revoke', revokeBody, async ({ subject, jti, until }) => {
      const reach = await hub.revoke(subject, {
        at: issuersNow(),
        ...(jti === undefined ? {} : { jti }),
        ...(until === undefined ? {} : { until }),
      })
      return { ...ok({ revoked: subject, ...reach }), target: subject }
    }),

    act('drain', drainBody, ({ withinMs, announceMs }) => {
      readiness.stopping()
      hub.drain({ withinMs, announceMs }).catch((cause) => hub.port.failed(cause))
      return { status: 202, body: { draining: true, withinMs, announceMs } }
    }),

    view('/admin/ids', () => ok({ formats: idFormatsOf(hub) })),

    act('ids', idsBody, async (body) => {
      const switched = await switchIds(hub, body)
      const { format, version } = switched.after
      const target = version === null ? format : `v${version}_ ${format}`
      return { ...ok(switched), target, isDry: !switched.isNew || switched.dryRun }
    }),

    view('/admin/maintenance', () => ok(maintenanceState())),

    act('maintenance', maintenanceBody, ({ on, retryAfterMs, withinMs }) => {
      if (on) maintenance.begin({ retryAfterMs, withinMs })
      else maintenance.end()
      return { ...ok(maintenanceState()), target: on ? 'on' : 'off' }
    }),
  ]

  function maintenanceState() {
    return maintenance.isOn ? { on: true, retryAfterMs: maintenance.retryAfterMs } : { on: false }
  }
}

/** `isDry`: nothing was changed. */
type Change = Result & { target?: string; isDry?: boolean }

function ok(body: unknown): Result {
  return { status: 200, body }
}

/** The JSON object in a body; an empty object for an empty body. */
function objectOf(value: unknown): object {
  if (value === null) return {}
  if (typeof value === 'object' && !Array.isArray(value)) return value
  throw invalidData('The body has to be a JSON object. GET /openapi.json says what belongs there.')
}

/**
 * The value, if the schema accepts it. Throws `invalid-data` with the first problem. Each message of the schema completes a
 * sentence that begins with the name of the field.
 */
export function checkedBody<S extends v.GenericSchema>(schema: S, value: unknown): v.InferOutput<S> {
  const { success, output, issues } = v.safeParse(schema, value)
  if (success) return output
  const [issue] = issues
  const field = v.getDotPath(issue)
  throw new RejoinError(field === null ? issue.message : fieldProblem(field, issue), { code: 'invalid-data' })
}

function fieldProblem(field: string, { input, message }: v.BaseIssue<unknown>): string {
  return input === undefined ? `"${field}" is missing.` : `"${field}" ${message}`
}
