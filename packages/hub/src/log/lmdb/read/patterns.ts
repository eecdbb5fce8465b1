import { comparePositions, isAfter, latest, origin, type Position, prefixOf } from '@rejoin/protocol'
import type { BackPage, LogEvent, PageLimit, TypedPosition } from '../../contract.ts'
import { eventBytes } from '../../event-bytes.ts'
import { addLoss, type Lost, lossAfter, type PageRange, type SelectorRead } from '../../selector-read.ts'
import type { Store } from '../files/store.ts'
import { type FeedEntry, feedAfter, feedBack, type Touched } from '../format/feed.ts'
import { recordKey } from '../format/keys.ts'
import { openRecord, type StoredRecord } from '../format/record.ts'
import { type BackRange, type PageSource, readChannel } from './channel.ts'

// Entries of the feed, and names in them, that one page looks at. A page must not take longer than some milliseconds, also when
// all new events are of other channels. The names count as well, because one commit may have touched thousands of channels.
const lookedAtATime = 1024
const namesAtATime = 4096
// Channels whose state one page looks up. Each costs two searches in the file.
const checkedAtATime = 512

/**
 * The events of all channels of a pattern, found by the feed. Undefined when the feed does not cover the range: the caller then
 * has to look at every channel.
 */
export function readByFeed(
  source: PageSource,
  pattern: string,
  { after, through, limit }: PageRange,
): SelectorRead | undefined {
  const prefixes = [prefixOf(pattern)]
  const events: LogEvent[] = []
  const checked = new Set<string>()
  // Any forgotten channel may have been one of the pattern's.
  if (isAfter(source.log.forgottenThrough, after)) return lossByFeed(source, pattern, { after, through })
  let bytes = 0
  let looked = 0
  let names = 0
  for (const entry of feedAfter(source.store, source.log, after)) {
    if (entry === 'broken') return undefined
    if (isAfter(entry.first, through)) break
    const brought = entriesOf(source, entry, prefixes)
    if (!brought) return undefined
    for (const channel of brought.trimmed) {
      const lost = lossAfter(source.stateOf(channel), after)
      if (lost) return addLoss(lost, lossByFeed(source, pattern, { after, through }))
    }
    for (const found of brought.entries) {
      if (!isAfter(found.position, after)) continue
      if (isAfter(found.position, through)) return { events, through }
      if (!checked.has(found.channel)) {
        checked.add(found.channel)
        const lost = lossAfter(source.stateOf(found.channel), after)
        if (lost) return addLoss(lost, lossByFeed(source, pattern, { after, through }))
      }
      if (found.isMark) continue
      const event = found.event()
      // The event is damaged, because it is not trimmed. A look at the channel itself tells which events are left.
      if (!event) return undefined
      events.push(event)
      bytes += eventBytes(event)
      const isFull = events.length >= limit.events || bytes >= limit.bytes || checked.size >= checkedAtATime
      if (isFull) return { events, through: event.position }
    }
    looked += 1
    names += entry.channels.length
    if (looked === lookedAtATime || names >= namesAtATime) {
      return { events, through: isAfter(entry.last, through) ? through : entry.last }
    }
  }
  return { events, through }
}

/** The loss of the channels of a pattern, as far as the feed leads to these channels within the time of one page. */
export function lossByFeed(
  source: PageSource,
  pattern: string,
  { after, through }: Pick<PageRange, 'after' | 'through'>,
): Lost | undefined {
  const prefix = prefixOf(pattern)
  const { forgottenThrough } = source.log
  const checked = new Set<string>()
  let lost: Lost | undefined = lossAfter({ trimmedThrough: forgottenThrough, invalidatedThrough: origin }, after)
  let looked = 0
  let names = 0
  for (const entry of feedAfter(source.store, source.log, after)) {
    if (entry === 'broken' || isAfter(entry.first, through)) return lost
    for (const { name } of entry.channels) {
      if (!name.startsWith(prefix) || checked.has(name) || checked.size >= checkedAtATime) continue
      checked.add(name)
      lost = addLoss(lost, lossAfter(source.stateOf(name), after))
    }
    looked += 1
    names += entry.channels.length
    if (looked === lookedAtATime || names >= namesAtATime || checked.size >= checkedAtATime) return lost
  }
  return lost
}

/** The newest positions of patterns, by the feed. Undefined when the feed does not reach back, or is damaged. */
export function readFeedBack(source: PageSource, patterns: readonly string[], range: BackRange): BackPage | undefined {
  const { store, log, stateOf } = source
  const prefixes = patterns.map(prefixOf)
  const namesAtMost = namesLooked(prefixes.length)
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
    if (looked === lookedBackAtATime || names >= namesAtMost)
      return { positions, completeAfter: entry.last, wholeAfter }
    looked += 1
    names += entry.channels.length
    const brought = entriesOf(source, entry, prefixes)
    if (!brought) return undefined
    for (const channel of brought.trimmed) wholeAfter = latest(wholeAfter, trimmedThrough(channel))
    for (const found of brought.entries.reverse()) {
      if (isAfter(found.position, range.through)) continue
      if (!isAfter(found.position, wholeAfter)) return { positions, completeAfter: wholeAfter, wholeAfter }
      if (positions.length === range.most) return { positions, completeAfter: found.position, wholeAfter }
      // The walk meets the newest entry of a channel first, so the loss of the channel is known before its older entries come.
      wholeAfter = latest(wholeAfter, trimmedThrough(found.channel))
      const event = isAfter(found.position, wholeAfter) && !found.isMark ? found.event() : undefined
      if (event) positions.push(event)
    }
  }
  return { positions, completeAfter: wholeAfter, wholeAfter }
}

const lookedBackAtATime = 512
/** How many names one page looks at. Each name is compared with every prefix. */
const namesLooked = (prefixes: number) => Math.max(512, Math.ceil(namesAtATime / prefixes))

/** An event that a commit brought to a channel, or a mark that the commit invalidated the channel. */
interface CommitEntry {
  readonly position: Position
  readonly channel: string
  readonly isMark: boolean
  /** Undefined when the channel no longer holds the event. */
  event(): LogEvent | undefined
}

/**
 * The events and marks that one commit brought to channels with one of `prefixes`. A commit may have touched thousands of
 * channels, and a page takes a few hundred of their events. So the record of a channel with one event is read only on demand.
 *
 * Undefined when some of a channel's events are damaged: only a look at all channels tells which events are left.
 */
function entriesOf(source: EntrySource, entry: FeedEntry, prefixes: readonly string[]): CommitEntries | undefined {
  const { store } = source
  const entries: CommitEntry[] = []
  const trimmed: string[] = []
  for (const touched of entry.channels) {
    const { name, first, events } = touched
    if (!prefixes.some((prefix) => name.startsWith(prefix))) continue
    if (events > 1) {
      let found = eventsOf(store, touched, entry)
      if (!found) {
        found = eventsLeft(source, touched, entry)
        trimmed.push(name)
      }
      if (!found) return undefined
      for (const event of found) {
        entries.push({ position: event.position, channel: name, isMark: false, event: () => event })
      }
    } else {
      entries.push({ position: first, channel: name, isMark: events === 0, event: () => single(store, touched) })
    }
  }
  return { entries: entries.sort((a, b) => comparePositions(a.position, b.position)), trimmed }
}

interface CommitEntries {
  /** In position order. */
  readonly entries: CommitEntry[]
  /** Channels that have trimmed an event of this commit. Their state tells whether a reader has lost something by that. */
  readonly trimmed: readonly string[]
}

type EntrySource = Pick<PageSource, 'store' | 'marks' | 'stateOf'>

function single(store: Store, { name, number, first }: Touched): LogEvent | undefined {
  const record = recordAt(store, number, first)
  return record?.events(name, 0, 1)[0]
}

/** The events of one channel in one commit. They lie in one record, or in several when there are many. */
function eventsOf(store: Store, { name, number, first, events }: Touched, { last }: FeedEntry): LogEvent[] | undefined {
  const record = recordAt(store, number, first)
  if (!record) return undefined
  const all = allOf(record, name)
  if (all.length >= events) return all
  const whole: LogEvent[] = []
  for (const { key, value } of store.range(recordKey(number, first), recordKey(number + 1, origin))) {
    const next = openRecord(key, value)
    if (!next || isAfter((next.stamps[0] as { position: Position }).position, last)) break
    whole.push(...allOf(next, name))
  }
  return whole.length === events ? whole : undefined
}

/** The events of the commit that are left after a trim; undefined when it was not a trim that took the others. */
function eventsLeft(source: EntrySource, { name, first }: Touched, { last }: FeedEntry): LogEvent[] | undefined {
  const state = source.stateOf(name)
  if (isAfter(first, state.trimmedThrough)) return undefined
  const read = readChannel(source, name, state, { after: state.trimmedThrough, through: last, limit: everything })
  return 'wholeAfter' in read || read.cut ? undefined : read.events
}

const everything: PageLimit = { events: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }

function recordAt(store: Store, number: number, first: Position): StoredRecord | undefined {
  const key = recordKey(number, first)
  const sealed = store.get(key)
  return sealed && openRecord(key, sealed)
}

function allOf(record: StoredRecord, channel: string): LogEvent[] {
  return record.events(channel, 0, record.stamps.length)
}
