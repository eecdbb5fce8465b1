import { covers, isPattern, RejoinError } from '@rejoin/protocol'
import { jsonAnswer } from '../http/answer.ts'
import { targetOf } from '../http/target.ts'
import type { Hub } from '../hub/hub.ts'
import type { ChannelWindow } from '../hub/read/channel-window.ts'
import type { ChannelEntry } from '../hub/read/entries.ts'
import { type OperationHandler, operationHandler } from './handler.ts'

/** What a channel or a pattern holds, under the names that debug endpoints of streams use, and its readers on this hub. */
export interface SseState extends Omit<ChannelWindow, 'events' | 'oldest' | 'newest'> {
  readonly channel: string
  readonly length: number
  /** The ids of the oldest and of the newest event; null without events. */
  readonly firstEntry: string | null
  readonly lastEntry: string | null
  /** The id of `firstEntry`, under the name by which runbooks compare it with the cursor of a reader. */
  readonly oldestIdInWindow: string | null
  readonly activeConnections: number
  /** The newest events, oldest first. */
  readonly entries: readonly ChannelEntry[]
}

/**
 * Answers `?channel=orders/42&limit=100` with the state of the channel, as JSON:
 * `app.get('/debug/sse-state', sseStateHandler(hub))`. Mount it behind a guard of your own: it shows ids, types, times and sizes
 * of events to every requester.
 */
export function sseStateHandler(hub: Hub): OperationHandler {
  return operationHandler(hub, ['GET', 'HEAD'], async (request) => {
    const { query } = targetOf(request)
    return jsonAnswer(200, await sseState(hub, selectorOf(query), { limit: limitOf(query) }))
  })
}

/**
 * The state of a channel, or of all channels of a pattern, for a debug endpoint of your own.
 *
 * @param options - `limit`: how many of the newest events are listed; 100 when left out
 */
export async function sseState(hub: Hub, selector: string, { limit = 100 } = {}): Promise<SseState> {
  const [window, entries] = await Promise.all([hub.admin.window(selector), hub.admin.entries(selector, { limit })])
  const { events, oldest, newest, ...rest } = window
  return {
    channel: selector,
    length: events,
    firstEntry: oldest,
    lastEntry: newest,
    oldestIdInWindow: oldest,
    ...rest,
    activeConnections: readersOf(hub, selector),
    entries,
  }
}

/** The number of readers that can get an event of the selector. */
function readersOf(hub: Hub, selector: string): number {
  if (!isPattern(selector)) return hub.readers(selector)
  let readers = 0
  for (const { channels } of hub.admin.connections()) {
    if (channels.some((other) => covers(selector, other) || covers(other, selector))) readers += 1
  }
  return readers
}

export function selectorOf(query: URLSearchParams): string {
  const channel = query.get('channel')
  if (channel === null) throw invalid('Say which channel: ?channel=orders/42.')
  return channel
}

/** The `limit` in a query, from 1 to 1,000. Throws for any other value. */
export function limitOf(query: URLSearchParams): number {
  const given = query.get('limit') ?? String(defaultLimit)
  if (!/^\d{1,15}$/.test(given)) throw invalid('"limit" has to be a whole number.')
  const limit = Number(given)
  if (limit < 1 || limit > maxLimit) throw invalid(`"limit" is ${limit}. Give 1 to ${maxLimit}.`)
  return limit
}

const defaultLimit = 100
const maxLimit = 1000

function invalid(message: string): RejoinError {
  return new RejoinError(message, { code: 'invalid-data' })
}
