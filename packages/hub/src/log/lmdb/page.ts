import { isAfter, isPattern, latest, origin, type Position } from '@rejoin/protocol'
import type { Gap, Page, PageLimit } from '../contract.ts'
import { mergePages, type PartRead } from '../merged-page.ts'
import { readPattern } from './patterns.ts'
import { readChannel } from './read.ts'
import type { ChannelState, LogState } from './state.ts'
import type { Store } from './store.ts'

/** What a page is read from. */
export interface PageSource {
  readonly store: Store
  readonly log: LogState
  /** What is stored of a channel, without what has fallen out of its window by now. */
  stateOf(channel: string): ChannelState
}

export interface PageRange {
  readonly after: Position
  readonly through: Position
  readonly limit: PageLimit
}

/** What was read of one channel or pattern, and how far it is good; or that something is gone. */
export type NameRead = PartRead | Lost

export interface Lost {
  /** Behind this place, as far as this read could see, everything is there. */
  readonly wholeAfter: Position
  /** Declared void, and not only trimmed. */
  readonly forced: boolean
}

/** One page of channels and patterns, in order. */
export function readPage(source: PageSource, names: readonly string[], range: PageRange): Page {
  const reads = names.map((name) => (isPattern(name) ? readPattern(source, name, range) : readOne(source, name, range)))
  const gap = gapOf(names, reads)
  return gap ? { events: [], completeThrough: range.after, gap } : mergePages(reads as PartRead[], range)
}

/** What follows a place in one channel. */
export function readOne({ store, stateOf }: PageSource, channel: string, range: PageRange): NameRead {
  const state = stateOf(channel)
  const forced = isAfter(state.invalidatedThrough, range.after)
  if (isAfter(state.trimmedThrough, range.after)) return { wholeAfter: state.trimmedThrough, forced }
  const read = readChannel(store, channel, state, range)
  if ('wholeAfter' in read) return { wholeAfter: read.wholeAfter, forced }
  // Behind the last event of a channel that was cut short, nothing is known of it.
  const last = read.cut ? read.events.at(-1)?.position : undefined
  return { events: read.events, through: last ?? range.through }
}

function gapOf(names: readonly string[], reads: readonly NameRead[]): Gap | undefined {
  const lost = reads.filter((read): read is Lost => 'wholeAfter' in read)
  if (lost.length === 0) return undefined
  return {
    channels: names.filter((_, index) => 'wholeAfter' in (reads[index] as NameRead)),
    reason: lost.some(({ forced }) => forced) ? 'forced' : 'expired',
    wholeAfter: lost.reduce((place, { wholeAfter }) => latest(place, wholeAfter), origin),
  }
}
