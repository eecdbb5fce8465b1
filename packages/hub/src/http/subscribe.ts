import type { SubscribeRequest } from '../hub/hub.ts'
import { createSubscription } from '../hub/subscription.ts'
import type { Target } from './target.ts'

export const streamHeaders: Readonly<Record<string, string>> = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
  Vary: 'Last-Event-ID, Authorization, Cookie, Origin',
}

/** Reads a subscription and its cursor out of a request (§3.1, §4.1). Throws on a bad channel or type. `channel` is what stood in the path, '' for none. */
export function readSubscription(
  channel: string,
  { query }: Target,
  header: (name: string) => string | undefined,
): SubscribeRequest {
  const channels = channel === '' ? query.getAll('channel') : [channel, ...query.getAll('channel')]
  const subscription = createSubscription(channels, query.getAll('type'))
  return { subscription, cursor: readCursor(query, header) }
}

function readCursor(query: URLSearchParams, header: (name: string) => string | undefined): string | null {
  const inHeader = header('last-event-id')
  if (inHeader) return inHeader
  for (const name of ['lastEventId', 'lastEventID', 'cursor']) {
    const values = query.getAll(name).filter((value) => value !== '')
    // Two places cannot both be the last. Joined they are nobody's id, as two headers are, and the verdict says so.
    if (values.length > 0) return values.join(', ')
  }
  return null
}
