import { isAfter, type Position } from '@rejoin/protocol'
import type { LogEvent, Page, PageLimit } from './contract.ts'
import { eventBytes } from './event-bytes.ts'
import { mergeInOrder } from './in-order.ts'

/** The events that were read of one channel or pattern: all of them up to `through`. */
export interface PartRead {
  readonly events: readonly LogEvent[]
  readonly through: Position
}

/** Where a page ends at the latest. */
export interface PageEnd {
  readonly through: Position
  readonly limit: PageLimit
}

/** Merges the reads of several selectors, each made under the same limit, into one page. It ends where the shortest read ends. */
export function mergePages(reads: readonly PartRead[], { through, limit }: PageEnd): Page {
  const end = reads.reduce((end, read) => (isAfter(end, read.through) ? read.through : end), through)
  const [only] = reads
  if (only && reads.length === 1) return { events: only.events, completeThrough: end }

  const events: LogEvent[] = []
  let bytes = 0
  for (const event of mergeInOrder(reads.map(({ events }) => ({ items: events, from: 0, to: events.length })))) {
    if (isAfter(event.position, end)) break
    events.push(event)
    bytes += eventBytes(event)
    if (events.length >= limit.events || bytes >= limit.bytes) return { events, completeThrough: event.position }
  }
  return { events, completeThrough: end }
}
