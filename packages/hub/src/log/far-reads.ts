import { isAfter, type Position } from '@rejoin/protocol'
import type { Cancel, Environment } from '../environment.ts'
import type { LogEvent, PageLimit } from './contract.ts'
import { eventBytes } from './event-bytes.ts'
import { indexAfter } from './in-order.ts'
import type { PartRead } from './merged-page.ts'
import type { NameRead, PageRange } from './name-read.ts'

/**
 * Reads of patterns from before where the feed begins, by a look at every channel. One look brings several pages: looked for
 * page by page, a reader of a million channels would cost a thousand looks.
 *
 * What a look brought is kept for the pages that follow, for ten seconds at most. Everything that was there between two positions
 * stays everything that was ever there, because events are appended behind them; what is trimmed meanwhile is served from here
 * once more. What is invalidated is not: `clear` is called for it.
 */
export interface FarReads {
  read(pattern: string, range: PageRange): Promise<NameRead>
  clear(): void
}

/** A look at every channel of a pattern, for a page of this size. */
export type Look = (pattern: string, range: PageRange) => Promise<NameRead>

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

// Eight pages of a hub, which are put together in some milliseconds.
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
