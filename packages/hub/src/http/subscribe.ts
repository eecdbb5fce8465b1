import type { SubscribeRequest } from '../hub/hub.ts'
import type { Shape } from '../hub/live/shape.ts'
import { createSubscription } from '../hub/live/subscription.ts'
import type { Start } from '../hub/read/opening.ts'
import type { RequestHead } from './route.ts'
import type { Target } from './target.ts'

/** The headers of a stream (§4.2). A stream for one subject must not be cached for another. */
export function streamHeaders(authenticated: boolean): Record<string, string> {
  return {
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': authenticated ? 'private, no-store, no-transform' : 'no-cache, no-transform',
    'X-Accel-Buffering': 'no',
    Vary: 'Last-Event-ID, Authorization, Cookie, Origin',
  }
}

/**
 * The channels of a subscription. A text is the channel in the path ('' for none), and the query may name more. A list comes from
 * the program, and the request cannot change it.
 */
export type Channels = string | readonly string[]

/** Reads what a reader asks for (§3.1, §4.1). Throws on a bad channel or type. */
export function readSubscription(
  named: Channels,
  { query }: Target,
  request: RequestHead,
  trusted: boolean,
): Pick<SubscribeRequest, 'subscription' | 'start' | 'client' | 'heartbeat'> {
  const subscription = createSubscription(
    namedChannels(named, query),
    query.getAll('type'),
    readShape(query.get('show')),
  )
  const id = query.get('clientId')
  const attempt = Number(query.get('attempt'))
  return {
    subscription,
    start: readStart(readCursor(query, request, trusted), query, subscription.channels),
    ...(id && id.length <= 128 && Number.isSafeInteger(attempt) ? { client: { id, attempt } } : {}),
    ...(query.get('heartbeat') === 'event' ? { heartbeat: 'event' as const } : {}),
  }
}

function readShape(show: string | null): Shape | undefined {
  return show === 'channel' || show === 'envelope' ? show : undefined
}

/** The channels that a request asks for, as it writes them. */
export function namedChannels(named: Channels, query: URLSearchParams): readonly string[] {
  if (typeof named !== 'string') return named
  return named === '' ? query.getAll('channel') : [named, ...query.getAll('channel')]
}

function readStart(cursor: string | null, query: URLSearchParams, channels: readonly string[]): Start {
  if (cursor === 'earliest') return { from: 'earliest' }
  if (cursor !== null) {
    const added = query.getAll('added').filter((channel) => channels.includes(channel))
    return { from: 'cursor', cursor, added }
  }
  const events = query.get('replay')
  if (events === null || !/^[0-9]+$/.test(events)) return { from: 'now' }
  return { from: 'last', events: Math.min(Number(events), Number.MAX_SAFE_INTEGER) }
}

function readCursor(query: URLSearchParams, { header }: RequestHead, trusted: boolean): string | null {
  const inHeader = header('last-event-id') || (trusted && header('x-forwarded-last-event-id'))
  if (inHeader) return inHeader
  for (const name of ['lastEventId', 'lastEventID', 'cursor']) {
    const values = query.getAll(name).filter((value) => value !== '')
    // Two cursors contradict each other. Joined, as HTTP joins two headers, they are no valid id, and the verdict says so.
    if (values.length > 0) return values.join(', ')
  }
  return null
}
