import { isAfter, type Position } from '@rejoin/protocol'
import type { Cancel, Environment } from '../environment.ts'
import type { LogEvent, PageLimit } from './contract.ts'
import { eventBytes } from './event-bytes.ts'
import { indexAfter } from './in-order.ts'
import type { PartRead } from './merged-page.ts'
import type { PageRange, SelectorRead } from './selector-read.ts'

/**
 * Reads of patterns from a position that the feed no longer covers. Such a read looks at every channel. One look brings several
 * pages: with a look for each page, a reader of a million channels would cost a thousand looks.
 *
 * The events of a look are kept for the next pages, for ten seconds at most. They stay complete, because new events are appended
 * after them. An event that is trimmed meanwhile is served once more. After an invalidation the log calls `clear`, so no
 * invalidated event is served.
 */
export interface FarReads {
  read(pattern: string, range: PageRange): Promise<SelectorRead>
  clear(): void
}

/** Looks at every channel of a pattern, for one page of this range. */
export type Look = (pattern: string, range: PageRange) => Promise<SelectorRead>

export function createFarReads(look: Look, environment: Pick<Environment, 'after'>): FarReads {
  let kept: Kept | undefined
  let clears = 0
  let stopForgetting: Cancel = () => undefined

  function keep(brought: Kept | undefined): void {
    stopForgetting()
    kept = brought
    if (brought) stopForgetting = environment.after(keptMs, () => keep(undefined))
  }

  return {
    async read(pattern, range) {
      const { after, through, limit } = range
      const isHere = kept?.pattern === pattern && !isAfter(kept.after, after) && isAfter(kept.through, after)
      if (kept && isHere) return cut(kept, range)
      const before = clears
      const brought = await look(pattern, { after, through, limit: largerOf(limit) })
      if ('wholeAfter' in brought) return brought
      const found = { pattern, after, ...brought }
      if (before === clears) keep(found)
      return cut(found, range)
    },
    clear() {
      clears += 1
      keep(undefined)
    },
  }
}

// Eight pages of a hub. To put them together takes some milliseconds.
const lookFor: PageLimit = { events: 8192, bytes: 2 * 1024 * 1024 }
const keptMs = 10_000

interface Kept extends PartRead {
  readonly pattern: string
  readonly after: Position
}

function largerOf({ events, bytes }: PageLimit): PageLimit {
  return { events: Math.max(events, lookFor.events), bytes: Math.max(bytes, lookFor.bytes) }
}

function cut({ events, through: end }: PartRead, { after, through, limit }: PageRange): PartRead {
  const found: LogEvent[] = []
  let bytes = 0
  for (let index = indexAfter(events, after); index < events.length; index += 1) {
    const event = events[index] as LogEvent
    if (isAfter(event.position, through)) return { events: found, through }
    found.push(event)
    bytes += eventBytes(event)
    if (found.length >= limit.events || bytes >= limit.bytes) return { events: found, through: event.position }
  }
  return { events: found, through: isAfter(end, through) ? through : end }
}
