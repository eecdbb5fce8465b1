import { isAfter, type Position } from '@rejoin/protocol'
import { byteCost } from '../channel-ring.ts'
import type { LogEvent, Page, PageLimit } from '../contract.ts'
import { mergeInOrder } from '../in-order.ts'
import type { ChannelEvents } from './read.ts'

/** One page of what was read of several channels, each of them under the same limit. */
export function mergePages(reads: readonly ChannelEvents[], through: Position, limit: PageLimit): Page {
  // Behind the last event of a channel that was cut short, nothing is known of it.
  const end = reads.reduce((end, { events, cut }) => {
    const last = events.at(-1)?.position
    return cut && last && isAfter(end, last) ? last : end
  }, through)
  const [only] = reads
  if (only && reads.length === 1) return { events: only.events, completeThrough: end }

  const events: LogEvent[] = []
  let bytes = 0
  for (const event of mergeInOrder(reads.map(({ events }) => ({ items: events, from: 0, to: events.length })))) {
    if (isAfter(event.position, end)) break
    events.push(event)
    bytes += byteCost(event)
    if (events.length >= limit.events || bytes >= limit.bytes) return { events, completeThrough: event.position }
  }
  return { events, completeThrough: end }
}
