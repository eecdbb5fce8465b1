import { comparePositions, isAfter, origin, type Position } from '@rejoin/protocol'
import type { LogEvent, PageLimit } from '../../contract.ts'
import type { Store } from '../files/store.ts'
import type { FeedEntry, Touched } from '../format/feed.ts'
import { recordKey } from '../format/keys.ts'
import { openRecord, type StoredRecord } from '../format/record.ts'
import type { PageSource } from './channel.ts'
import { readChannel } from './channel.ts'

/** An event that a commit brought to a channel, or a mark that the commit invalidated the channel. */
export interface News {
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
export function newsOf(source: NewsSource, entry: FeedEntry, prefixes: readonly string[]): CommitNews | undefined {
  const { store } = source
  const news: News[] = []
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
        news.push({ position: event.position, channel: name, isMark: false, event: () => event })
      }
    } else {
      news.push({ position: first, channel: name, isMark: events === 0, event: () => single(store, touched) })
    }
  }
  return { news: news.sort((a, b) => comparePositions(a.position, b.position)), trimmed }
}

export interface CommitNews {
  /** In position order. */
  readonly news: News[]
  /** Channels that have let go of an event of this commit. Their state tells whether a reader has lost something by that. */
  readonly trimmed: readonly string[]
}

export type NewsSource = Pick<PageSource, 'store' | 'stateOf'>

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
function eventsLeft(
  { store, stateOf }: NewsSource,
  { name, first }: Touched,
  { last }: FeedEntry,
): LogEvent[] | undefined {
  const state = stateOf(name)
  if (isAfter(first, state.trimmedThrough)) return undefined
  const read = readChannel(store, name, state, { after: state.trimmedThrough, through: last, limit: everything })
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
