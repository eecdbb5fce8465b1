import { comparePositions, isAfter, type Position, prefixOf } from '@rejoin/protocol'
import { byteCost } from '../channel-ring.ts'
import type { LogEvent } from '../contract.ts'
import { mergePages, type PartRead } from '../merged-page.ts'
import { type FeedEntry, feedAfter, type Touched } from './feed.ts'
import { afterChannels, channelKey, channelOf, recordKey } from './keys.ts'
import { type Lost, type NameRead, type PageRange, type PageSource, readOne } from './page.ts'
import { openRecord, type StoredRecord } from './record.ts'
import { type ChannelState, openChannelState } from './state.ts'
import type { Store } from './store.ts'

/** What follows a place in all channels of a pattern: found by the feed, or else by a look at every one of them. */
export function readPattern(source: PageSource, pattern: string, range: PageRange): NameRead {
  const { forgottenThrough } = source.log
  // A channel that was forgotten may have been any of them.
  if (isAfter(forgottenThrough, range.after)) return { wholeAfter: forgottenThrough, forced: false }
  return readByFeed(source, prefixOf(pattern), range) ?? readEvery(source, prefixOf(pattern), range)
}

/** Every channel that starts with `prefix`, with its state as it is stored, undefined where it is damaged. */
export function* channelsUnder(
  store: Store,
  prefix: string,
  from = channelKey(prefix),
): Generator<{ key: Buffer; channel: string; state: ChannelState | undefined }> {
  for (const { key, value } of store.range(from, afterChannels)) {
    const channel = channelOf(key)
    if (!channel.startsWith(prefix)) return
    yield { key, channel, state: openChannelState(key, value) }
  }
}

// A page must not take longer than some milliseconds, also when all the news is of others.
const lookedAtATime = 2048

/** Undefined when the feed cannot tell. */
function readByFeed(source: PageSource, prefix: string, { after, through, limit }: PageRange): NameRead | undefined {
  const events: LogEvent[] = []
  const checked = new Map<string, Lost | undefined>()
  let bytes = 0
  let looked = 0
  for (const entry of feedAfter(source.store, source.log, after)) {
    if (entry === 'broken') return undefined
    if (isAfter(entry.first, through)) return { events, through }
    const found = newsOf(source, entry, prefix, after, checked)
    if (!found || 'wholeAfter' in found) return found
    for (const event of found) {
      if (isAfter(event.position, through)) return { events, through }
      events.push(event)
      bytes += byteCost(event)
      if (events.length >= limit.events || bytes >= limit.bytes) return { events, through: event.position }
    }
    looked += 1
    if (looked === lookedAtATime) return { events, through: isAfter(entry.last, through) ? through : entry.last }
  }
  return { events, through }
}

/** What one commit brought to channels that start with `prefix`, in order. */
function newsOf(
  source: PageSource,
  entry: FeedEntry,
  prefix: string,
  after: Position,
  checked: Map<string, Lost | undefined>,
): LogEvent[] | Lost | undefined {
  const found: LogEvent[] = []
  let channels = 0
  for (const touched of entry.channels) {
    if (!touched.name.startsWith(prefix)) continue
    if (!checked.has(touched.name)) checked.set(touched.name, lossOf(source.stateOf(touched.name), after))
    const lost = checked.get(touched.name)
    if (lost) return lost
    const events = eventsOf(source.store, touched, entry)
    // Trimmed, when the reader has them; damaged, when it does not. A look at the channel itself tells.
    if (!events) return undefined
    for (const event of events) if (isAfter(event.position, after)) found.push(event)
    channels += 1
  }
  return channels > 1 ? found.sort((a, b) => comparePositions(a.position, b.position)) : found
}

function lossOf({ trimmedThrough, invalidatedThrough }: ChannelState, after: Position): Lost | undefined {
  if (!isAfter(trimmedThrough, after)) return undefined
  return { wholeAfter: trimmedThrough, forced: isAfter(invalidatedThrough, after) }
}

/** The events of one channel in one commit. They are in one record, unless they are many. */
function eventsOf(store: Store, { name, number, first, events }: Touched, { last }: FeedEntry): LogEvent[] | undefined {
  if (events === 0) return []
  const key = recordKey(number, first)
  const sealed = store.get(key)
  const record = sealed && openRecord(key, sealed)
  if (!record) return undefined
  const all = allOf(record, name)
  if (all.length >= events) return all
  const whole: LogEvent[] = []
  for (const { key, value } of store.range(recordKey(number, first), recordKey(number + 1, { ms: 0, seq: 0 }))) {
    const next = openRecord(key, value)
    if (!next || isAfter((next.places[0] as { position: Position }).position, last)) break
    whole.push(...allOf(next, name))
  }
  return whole.length === events ? whole : undefined
}

function allOf(record: StoredRecord, channel: string): LogEvent[] {
  return record.events(channel, 0, record.places.length)
}

/** Where the feed does not reach back. One whose entry is damaged may have changed. */
function readEvery(source: PageSource, prefix: string, range: PageRange): NameRead {
  const changed: string[] = []
  for (const { channel, state } of channelsUnder(source.store, prefix)) {
    if (!state || isAfter(state.newest, range.after)) changed.push(channel)
  }
  // With many of them, a page of each would be far more than the one page that is wanted.
  const share = Math.max(1, Math.ceil((4 * range.limit.events) / Math.max(1, changed.length)))
  const limit = { ...range.limit, events: Math.min(range.limit.events, share) }
  const reads = changed.map((channel) => readOne(source, channel, { ...range, limit }))
  const lost = reads.find((read): read is Lost => 'wholeAfter' in read)
  if (lost) return lost
  const { events, completeThrough } = mergePages(reads as PartRead[], range)
  return { events, through: completeThrough }
}
