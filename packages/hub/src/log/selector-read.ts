import { isAfter, isPattern, latest, origin, type Position } from '@rejoin/protocol'
import type { Gap, Page, PageLimit } from './contract.ts'
import { mergePages, type PartRead } from './merged-page.ts'

/** The events that were read of one channel or pattern, or a loss where some are gone. */
export type SelectorRead = PartRead | Lost

export interface Lost {
  /** After this position everything is there, as far as this read could see. */
  readonly wholeAfter: Position
  /** True when the events were invalidated, false when they were only trimmed. */
  readonly forced: boolean
}

export interface PageRange {
  readonly after: Position
  readonly through: Position
  readonly limit: PageLimit
}

/** The loss of a channel after a position, undefined when it has lost nothing there. */
export function lossAfter(
  { trimmedThrough, invalidatedThrough }: { readonly trimmedThrough: Position; readonly invalidatedThrough: Position },
  after: Position,
): Lost | undefined {
  if (!isAfter(trimmedThrough, after)) return undefined
  return { wholeAfter: trimmedThrough, forced: isAfter(invalidatedThrough, after) }
}

export function addLoss(sum: Lost | undefined, other: Lost | undefined): Lost | undefined {
  if (!sum || !other) return sum ?? other
  return { wholeAfter: latest(sum.wholeAfter, other.wholeAfter), forced: sum.forced || other.forced }
}

/**
 * Makes one page of the reads of several selectors, or announces their gap.
 *
 * @param lossBeyond - the loss of a pattern beyond its part of this page. Asked when there is a gap: the reader is sent past that
 *   loss as well, so that it is told once and not twice.
 */
export function pageOf(
  selectors: readonly string[],
  reads: readonly SelectorRead[],
  range: PageRange,
  lossBeyond: (pattern: string) => Lost | undefined,
): Page {
  const lost = reads.filter((read): read is Lost => 'wholeAfter' in read)
  if (lost.length === 0) return mergePages(reads as PartRead[], range)
  const wholeSoFar = selectors.filter(
    (selector, index) => isPattern(selector) && !('wholeAfter' in (reads[index] as SelectorRead)),
  )
  const beyond = wholeSoFar.flatMap((pattern) => lossBeyond(pattern) ?? [])
  const gap: Gap = {
    channels: selectors.filter((_, index) => 'wholeAfter' in (reads[index] as SelectorRead)),
    reason: lost.some(({ forced }) => forced) ? 'forced' : 'expired',
    wholeAfter: [...lost, ...beyond].reduce((position, { wholeAfter }) => latest(position, wholeAfter), origin),
  }
  return { events: [], completeThrough: range.after, gap }
}
