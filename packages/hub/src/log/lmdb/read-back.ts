import { isAfter, latest, origin, type Position, prefixOf } from '@rejoin/protocol'
import type { BackPage, TypedPlace } from '../contract.ts'
import { newsOf } from './commit-news.ts'
import { feedBack } from './feed.ts'
import { recordKey } from './keys.ts'
import type { PageSource } from './page.ts'
import { openRecord, type StoredPlace } from './record.ts'

/** The newest places of a channel, newest first. Undefined when a record is damaged: reading forward tells what is left. */
export function readChannelBack(source: PageSource, channel: string, range: BackRange): BackPage | undefined {
  const { store, stateOf } = source
  const state = stateOf(channel)
  const wholeAfter = latest(range.after, state.trimmedThrough)
  const places: TypedPlace[] = []
  // One that is not known has no number either.
  if (!isAfter(state.newest, wholeAfter)) return { places, completeAfter: wholeAfter, wholeAfter }
  const first = recordKey(state.number, origin)
  for (const { key, value } of store.rangeBack(recordKey(state.number, range.through), first)) {
    const record = openRecord(key, value)
    if (!record) return undefined
    for (let index = record.places.length - 1; index >= 0; index -= 1) {
      const place = record.places[index] as StoredPlace
      if (isAfter(place.position, range.through)) continue
      if (!isAfter(place.position, wholeAfter)) return { places, completeAfter: wholeAfter, wholeAfter }
      if (places.length === range.most) return { places, completeAfter: place.position, wholeAfter }
      places.push(place)
    }
  }
  return { places, completeAfter: wholeAfter, wholeAfter }
}

export interface BackRange {
  readonly after: Position
  readonly through: Position
  readonly most: number
}

/** The newest places of patterns, by the feed. Undefined where the feed does not reach back, or is damaged. */
export function readFeedBack(source: PageSource, patterns: readonly string[], range: BackRange): BackPage | undefined {
  const { store, log, stateOf } = source
  const prefixes = patterns.map(prefixOf)
  const namesAtATime = namesLooked(prefixes.length)
  const places: TypedPlace[] = []
  let wholeAfter = latest(range.after, log.forgottenThrough)
  let looked = 0
  let names = 0
  for (const entry of feedBack(store, range.through)) {
    if (entry === 'broken') return undefined
    if (!isAfter(entry.last, wholeAfter)) return { places, completeAfter: wholeAfter, wholeAfter }
    if (looked === lookedAtATime || names >= namesAtATime) return { places, completeAfter: entry.last, wholeAfter }
    looked += 1
    names += entry.channels.length
    const brought = newsOf(store, entry, prefixes)
    if (!brought) return undefined
    for (const news of brought.reverse()) {
      if (isAfter(news.position, range.through)) continue
      if (!isAfter(news.position, wholeAfter)) return { places, completeAfter: wholeAfter, wholeAfter }
      if (places.length === range.most) return { places, completeAfter: news.position, wholeAfter }
      // What the channel lost is behind its newest entry, and that is the first of its entries that is met here.
      wholeAfter = latest(wholeAfter, stateOf(news.channel).trimmedThrough)
      const event = isAfter(news.position, wholeAfter) && !news.isMark ? news.event() : undefined
      if (event) places.push(event)
    }
  }
  return { places, completeAfter: wholeAfter, wholeAfter }
}

const lookedAtATime = 512
/** Each is compared with every prefix. */
const namesLooked = (prefixes: number) => Math.max(512, Math.ceil(4096 / prefixes))
