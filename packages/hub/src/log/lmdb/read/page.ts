import { isAfter, isPattern } from '@rejoin/protocol'
import type { Page } from '../../contract.ts'
import { lossAfter, type PageRange, pageOf, type SelectorRead } from '../../selector-read.ts'
import { type PageSource, readChannel } from './channel.ts'
import { lossByFeed, readByFeed } from './patterns.ts'

/**
 * One page of channels and patterns, in order. When the feed does not cover a pattern, returns that pattern as `tooFar`: the
 * caller then reads it by a look at every channel, and calls again.
 *
 * @param far - the patterns that the caller has read in that way
 */
export function readPage(
  source: PageSource,
  selectors: readonly string[],
  range: PageRange,
  far: ReadonlyMap<string, SelectorRead>,
): Page | { readonly tooFar: string } {
  const reads: SelectorRead[] = []
  for (const selector of selectors) {
    const read =
      far.get(selector) ??
      (isPattern(selector) ? readByFeed(source, selector, range) : readOne(source, selector, range))
    if (!read) return { tooFar: selector }
    reads.push(read)
  }
  return pageOf(selectors, reads, range, (pattern) => lossByFeed(source, pattern, range))
}

export function readOne({ store, stateOf }: PageSource, channel: string, range: PageRange): SelectorRead {
  const state = stateOf(channel)
  const lost = lossAfter(state, range.after)
  if (lost) return lost
  const read = readChannel(store, channel, state, range)
  if ('wholeAfter' in read) {
    return { wholeAfter: read.wholeAfter, forced: isAfter(state.invalidatedThrough, range.after) }
  }
  // When the read was cut short, it covers the channel up to its last event only.
  const last = read.cut ? read.events.at(-1)?.position : undefined
  return { events: read.events, through: last ?? range.through }
}
