import { isAfter, latest, origin, type Position, prefixOf } from '@rejoin/protocol'
import type { BackPage, TypedPosition } from '../../contract.ts'
import { feedBack } from '../format/feed.ts'
import { recordKey } from '../format/keys.ts'
import { openRecord, type StoredStamp } from '../format/record.ts'
import type { PageSource } from './channel.ts'
import { newsOf } from './commit-news.ts'

/** The newest positions of a channel, newest first. Undefined when a record is damaged: a read forward tells what is left. */
export function readChannelBack(source: PageSource, channel: string, range: BackRange): BackPage | undefined {
  const { store, stateOf } = source
  const state = stateOf(channel)
  const wholeAfter = latest(range.after, state.trimmedThrough)
  const positions: TypedPosition[] = []
  // An unknown channel returns here. It has no number, and so no records.
  if (!isAfter(state.newest, wholeAfter)) return { positions, completeAfter: wholeAfter, wholeAfter }
  const first = recordKey(state.number, origin)
  for (const { key, value } of store.rangeBack(recordKey(state.number, range.through), first)) {
    const record = openRecord(key, value)
    if (!record) return undefined
    for (let index = record.stamps.length - 1; index >= 0; index -= 1) {
      const stamp = record.stamps[index] as StoredStamp
      if (isAfter(stamp.position, range.through)) continue
      if (!isAfter(stamp.position, wholeAfter)) return { positions, completeAfter: wholeAfter, wholeAfter }
      if (positions.length === range.most) return { positions, completeAfter: stamp.position, wholeAfter }
      positions.push(stamp)
    }
  }
  return { positions, completeAfter: wholeAfter, wholeAfter }
}

export interface BackRange {
  readonly after: Position
  readonly through: Position
  readonly most: number
}

/** The newest positions of patterns, by the feed. Undefined when the feed does not reach back, or is damaged. */
export function readFeedBack(source: PageSource, patterns: readonly string[], range: BackRange): BackPage | undefined {
  const { store, log, stateOf } = source
  const prefixes = patterns.map(prefixOf)
  const namesAtATime = namesLooked(prefixes.length)
  const positions: TypedPosition[] = []
  let wholeAfter = latest(range.after, log.forgottenThrough)
  const known = new Map<string, Position>()
  const trimmedThrough = (channel: string) => {
    const position = known.get(channel) ?? stateOf(channel).trimmedThrough
    known.set(channel, position)
    return position
  }
  let looked = 0
  let names = 0
  for (const entry of feedBack(store, range.through)) {
    if (entry === 'broken') return undefined
    if (!isAfter(entry.last, wholeAfter)) return { positions, completeAfter: wholeAfter, wholeAfter }
    if (looked === lookedAtATime || names >= namesAtATime) return { positions, completeAfter: entry.last, wholeAfter }
    looked += 1
    names += entry.channels.length
    const brought = newsOf(source, entry, prefixes)
    if (!brought) return undefined
    for (const channel of brought.trimmed) wholeAfter = latest(wholeAfter, trimmedThrough(channel))
    for (const news of brought.news.reverse()) {
      if (isAfter(news.position, range.through)) continue
      if (!isAfter(news.position, wholeAfter)) return { positions, completeAfter: wholeAfter, wholeAfter }
      if (positions.length === range.most) return { positions, completeAfter: news.position, wholeAfter }
      // The walk meets the newest entry of a channel first, so the loss of the channel is known before its older entries come.
      wholeAfter = latest(wholeAfter, trimmedThrough(news.channel))
      const event = isAfter(news.position, wholeAfter) && !news.isMark ? news.event() : undefined
      if (event) positions.push(event)
    }
  }
  return { positions, completeAfter: wholeAfter, wholeAfter }
}

const lookedAtATime = 512
/** How many names one page looks at. Each name is compared with every prefix. */
const namesLooked = (prefixes: number) => Math.max(512, Math.ceil(4096 / prefixes))
