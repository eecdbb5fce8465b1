import type { Shape } from '../hub/live/shape.ts'
import { createSubscription } from '../hub/live/subscription.ts'
import type { Start } from '../hub/read/opening.ts'
import type { SubscribeRequest } from '../hub/readers/subscribe-request.ts'
import type { RequestHead } from './request-head.ts'
import type { Target } from './target.ts'

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
): AskedStream {
  const subscription = createSubscription(
    namedSelectors(named, query),
    query.getAll('type'),
    readShape(query.get('show')),
  )
  return {
    subscription,
    start: readStart(readCursor(query, request, trusted), query, subscription.selectors),
    client: readClient(query),
    heartbeat: query.get('heartbeat') === 'event' ? 'event' : 'comment',
  }
}

/** What a request says about its stream. */
export type AskedStream = Pick<SubscribeRequest, 'subscription' | 'start' | 'client'> &
  Required<Pick<SubscribeRequest, 'heartbeat'>>

function readClient(query: URLSearchParams): SubscribeRequest['client'] {
  const id = query.get('clientId')
  const attempt = Number(query.get('attempt'))
  return id && id.length <= 128 && Number.isSafeInteger(attempt) ? { id, attempt } : undefined
}

function readShape(show: string | null): Shape | undefined {
  return show === 'channel' || show === 'envelope' ? show : undefined
}

/** The channels and patterns that a request names in its path and its query, as it writes them. */
export function namedSelectors(named: Channels, query: URLSearchParams): readonly string[] {
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
