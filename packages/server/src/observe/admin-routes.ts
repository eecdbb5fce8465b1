import type { Hub } from '@rejoin/hub'
import { RejoinError } from '@rejoin/protocol'
import type { AdminAction } from '../announce/announcer.ts'
import * as docs from './admin-docs.ts'
import { endConnections, listConnections } from './connections.ts'
import type { Maintenance } from './maintenance.ts'
import type { Readiness } from './readiness.ts'
import type { Call, Result, Route } from './routes.ts'

export interface AdminOptions {
  readonly hub: Hub
  readonly maintenance: Maintenance
  readonly readiness: Pick<Readiness, 'stopping'>
  /** Told of every change that an operator makes. */
  administered(action: AdminAction): void
}

/** What an operator can look at and do. */
export function adminRoutes(options: AdminOptions): Route[] {
  const { hub, maintenance, readiness, administered } = options
  let letStay: (() => void) | undefined

  const look = (path: string, doc: Route['doc'], handle: Route['handle']): Route => ({
    ...{ method: 'GET', path, open: 'to-admins', doc, handle },
  })

  /** A change: what was done, and to what, is told before it is answered. */
  const act = (action: string, doc: Route['doc'], change: (body: Fields) => Change | Promise<Change>): Route => ({
    ...{ method: 'POST', path: `/admin/${action}`, open: 'to-admins', doc },
    async handle({ ip, body }) {
      const { target, ...result } = await change(fieldsOf(await body()))
      administered({ action, ip, ...(target === undefined ? {} : { target }) })
      return result
    },
  })

  return [
    look('/admin/channels', docs.channels, async ({ query }) => {
      const limit = limitOf(query)
      const [prefix, after] = [query.get('prefix') ?? '', query.get('after') ?? '']
      const channels = await hub.channels({ prefix, after, limit })
      return ok({ channels, next: channels.length === limit ? (channels.at(-1)?.channel ?? null) : null })
    }),

    look('/admin/window', docs.window, async (call) => {
      const channel = channelOf(call)
      return ok({ channel, ...(await hub.window(channel)) })
    }),

    look('/admin/connections', docs.connections, ({ query }) => {
      const limit = limitOf(query)
      const [subject, channel] = [query.get('subject'), query.get('channel')]
      const page = listConnections(hub, {
        ...{ after: query.get('after') ?? '', limit },
        ...(subject === null ? {} : { subject }),
        ...(channel === null ? {} : { channel }),
      })
      return ok(page)
    }),

    look('/debug/sse-state', docs.sseState, async (call) => {
      const channel = channelOf(call)
      const { events, bytes, oldest, newest } = await hub.window(channel)
      return ok({
        ...{ length: events, bytes, firstEntry: oldest, lastEntry: newest, oldestIdInWindow: oldest },
        activeConnections: hub.readers(channel),
      })
    }),

    act('disconnect', docs.disconnect, async (body) => {
      const [connection, subject] = [optionalText(body, 'connection'), optionalText(body, 'subject')]
      if ((connection === undefined) === (subject === undefined)) {
        throw invalid('Name either a "connection" or a "subject".')
      }
      const who = connection === undefined ? { subject: subject as string } : { connection }
      const outcome = await hub.disconnectAll(who)
      return { ...ok(outcome), target: (connection ?? subject) as string }
    }),

    act('invalidate', docs.invalidate, async (body) => {
      const channel = text(body, 'channel')
      await hub.invalidate(channel)
      return { ...ok({ invalidated: channel }), target: channel }
    }),

    act('revoke', docs.revoke, async (body) => {
      const subject = text(body, 'subject')
      const [jti, until] = [optionalText(body, 'jti'), body.until]
      if (until !== undefined && !Number.isSafeInteger(until))
        throw invalid('"until" has to be milliseconds since 1970.')
      const reach = await hub.revoke(subject, {
        ...(jti === undefined ? {} : { jti }),
        ...(until === undefined ? {} : { until: until as number }),
      })
      return { ...ok({ revoked: subject, ...reach }), target: subject }
    }),

    act('drain', docs.drain, (body) => {
      const withinMs = optionalMs(body, 'withinMs', 5000)
      readiness.stopping()
      hub.drain({ withinMs }).catch((cause) => hub.failed(cause))
      return { status: 202, body: { draining: true, withinMs } }
    }),

    look('/admin/maintenance', docs.maintenanceState, () => ok(maintenanceState())),

    act('maintenance', docs.maintenance, (body) => {
      if (typeof body.on !== 'boolean') throw invalid('"on" has to be true or false.')
      const retryAfterMs = optionalMs(body, 'retryAfterMs', 60_000)
      const withinMs = optionalMs(body, 'withinMs', 5000)
      letStay?.()
      if (body.on) {
        maintenance.begin(retryAfterMs)
        letStay = endConnections(hub, { reason: 'maintenance', withinMs, retryMs: maintenance.retryMs })
      } else {
        maintenance.end()
      }
      return { ...ok(maintenanceState()), target: body.on ? 'on' : 'off' }
    }),
  ]

  function maintenanceState() {
    return maintenance.isOn ? { on: true, retryAfterMs: maintenance.retryAfterMs } : { on: false }
  }
}

type Change = Result & { target?: string }
type Fields = Readonly<Record<string, unknown>>

function ok(body: unknown): Result {
  return { status: 200, body }
}

const defaultLimit = 100
/** The longest page, of channels or connections. */
export const maxLimit = 1000

function limitOf(query: URLSearchParams): number {
  const limit = wholeNumber('limit', query.get('limit') ?? String(defaultLimit))
  if (limit < 1 || limit > maxLimit) throw invalid(`"limit" is ${limit}. Give 1 to ${maxLimit}.`)
  return limit
}

function wholeNumber(name: string, given: string): number {
  if (/^\d{1,15}$/.test(given)) return Number(given)
  throw invalid(`"${name}" has to be a whole number.`)
}

function channelOf({ query }: Call): string {
  const channel = query.get('channel')
  if (channel === null) throw invalid('Say which channel: ?channel=orders/42.')
  return channel
}

function fieldsOf(value: unknown): Fields {
  if (value === null) return {}
  if (typeof value === 'object' && !Array.isArray(value)) return value as Fields
  throw invalid('The body has to be a JSON object. GET /openapi.json says what belongs there.')
}

function text(fields: Fields, name: string): string {
  const value = optionalText(fields, name)
  if (value === undefined) throw invalid(`"${name}" is missing. It has to be a string.`)
  return value
}

function optionalText(fields: Fields, name: string): string | undefined {
  const value = fields[name]
  if (value === undefined || (typeof value === 'string' && value !== '')) return value
  throw invalid(`"${name}" has to be a string, and not an empty one.`)
}

// Longer, and a typing error would keep readers away for good.
const longestMs = 24 * 3_600_000

function optionalMs(fields: Fields, name: string, otherwise: number): number {
  const value = fields[name] ?? otherwise
  if (typeof value === 'number' && value >= 0 && value <= longestMs) return value
  throw invalid(`"${name}" has to be a number of milliseconds, at most ${longestMs}.`)
}

function invalid(message: string): RejoinError {
  return new RejoinError(message, { code: 'invalid-data' })
}
