import { isAfter, isPattern, latest, origin, type Position } from '@rejoin/protocol'
import type { Gap, Page, PageLimit } from './contract.ts'
import { mergePages, type PartRead } from './merged-page.ts'

/** What was read of one channel or pattern, and how far it is good; or that something is gone. */
export type NameRead = PartRead | Lost

export interface Lost {
  /** Behind this position, as far as this read could see, everything is there. */
  readonly wholeAfter: Position
  /** Invalidated, and not only trimmed. */
  readonly forced: boolean
}

/** What a page is to hold. */
export interface PageRange {
  readonly after: Position
  readonly through: Position
  readonly limit: PageLimit
}

/** What a channel has lost after a position, undefined when nothing. */
export function lossAfter(
  { trimmedThrough, invalidatedThrough }: { readonly trimmedThrough: Position; readonly invalidatedThrough: Position },
  after: Position,
): Lost | undefined {
  if (!isAfter(trimmedThrough, after)) return undefined
  return { wholeAfter: trimmedThrough, forced: isAfter(invalidatedThrough, after) }
}

/** Both losses as one. */
export function addLoss(sum: Lost | undefined, other: Lost | undefined): Lost | undefined {
  if (!sum || !other) return sum ?? other
  return { wholeAfter: latest(sum.wholeAfter, other.wholeAfter), forced: sum.forced || other.forced }
}

/**
 * One page of what was read of several names, or their gap.
 *
 * @param lossBeyond - what a pattern has lost that its own part of the page did not come to. Asked when there is a gap: the
 *   reader is to be sent behind that as well, and not to be alarmed twice.
 */
export function pageOf(
  names: readonly string[],
  reads: readonly NameRead[],
  range: PageRange,
  lossBeyond: (pattern: string) => Lost | undefined,
): Page {
  const lost = reads.filter((read): read is Lost => 'wholeAfter' in read)
  if (lost.length === 0) return mergePages(reads as PartRead[], range)
  const wholeSoFar = names.filter((name, index) => isPattern(name) && !('wholeAfter' in (reads[index] as NameRead)))
  const beyond = wholeSoFar.flatMap((name) => lossBeyond(name) ?? [])
  const gap: Gap = {
    channels: names.filter((_, index) => 'wholeAfter' in (reads[index] as NameRead)),
    reason: lost.some(({ forced }) => forced) ? 'forced' : 'expired',
    wholeAfter: [...lost, ...beyond].reduce((position, { wholeAfter }) => latest(position, wholeAfter), origin),
  }
  return { events: [], completeThrough: range.after, gap }
}
