import { latest, origin, type Position, type RejoinError } from '@rejoin/protocol'
import type { LogEvent, NewEvent, Place } from '../contract.ts'
import { channelEnded } from '../ended.ts'
import { refuseRetaining, retainedCost } from '../retained.ts'
import type { Windows } from '../window.ts'
import { maxFeedEntries, sealFeedEntry, staleEntries } from './feed.ts'
import { channelKey, feedKey, recordKey, retainedKey, retainedRange } from './keys.ts'
import { sealRecord } from './record.ts'
import { openRetained, sealRetained } from './retained.ts'
import { type ChannelState, type LogState, openChannelState, sealChannelState } from './state.ts'
import type { Changes, Entry, Store } from './store.ts'
import { recordsOf, type Trimming, trimChannel } from './trim.ts'

/**
 * One commit in the making. It reads what is stored, takes events and invalidations in position order, and says in the end
 * what has to change. Nothing is touched before that: a commit that fails leaves nothing behind, in memory either.
 */
export interface Draft {
  /** What the log's state will be. */
  readonly state: LogState
  /** Everything the tail has to be told once it is committed, in order. */
  readonly events: readonly LogEvent[]
  /** Appends them all, or says why it cannot. */
  append(entries: readonly NewEvent[], places: readonly Place[]): RejoinError | undefined
  invalidate(channel: string, place: Place): LogEvent
  /** Ends a channel; of one that has ended, gives the entry of then. */
  end(channel: string, place: Place): LogEvent
  /** Brings a channel within its window; forgets it when it was empty before `emptyBefore`. */
  sweep(channel: string, emptyBefore: number): void
  /** Gives up a channel's entry that is damaged: it may have been that of any channel there is not. */
  discard(key: Buffer): void
  /** Lets go of the feed's oldest entries: those made before a time, some at a time. */
  sweepFeed(madeBefore: number): void
  changes(): Changes
}

export function createDraft(store: Store, stored: LogState, trimming: DraftTrimming): Draft {
  const state = { ...stored }
  const events: LogEvent[] = []
  const channels = new Map<string, ChannelDraft>()
  const removals: Buffer[] = []
  /** Channels that readers of patterns have to be told of. */
  const touched = new Map<string, { first: Position; events: number }>()
  let feedMadeBefore: number | undefined

  /** What is known of a channel, which this does not make. */
  function known(name: string): ChannelState | undefined {
    const key = channelKey(name)
    const sealed = channels.has(name) ? undefined : store.get(key)
    return channels.get(name)?.state ?? (sealed && openChannelState(key, sealed))
  }

  function refuse(entries: readonly NewEvent[]): RejoinError | undefined {
    const names = new Set(entries.map((entry) => entry.channel))
    for (const name of names) if (known(name)?.ended) return channelEnded(name)
    return refuseRetaining(entries, (name) => known(name)?.retained ?? { keys: 0, bytes: 0 }, retainedAt)
  }

  function retainedAt(name: string, key: string): LogEvent | undefined {
    const draft = channels.get(name)
    if (draft?.retained?.has(key)) return draft.retained.get(key)
    const state = known(name)
    if (!state?.retained?.keys || draft?.voided) return undefined
    const place = retainedKey(state.number, key)
    const sealed = store.get(place)
    return sealed && openRetained(place, sealed, name)
  }

  function retain(channel: ChannelDraft, key: string, after: LogEvent | undefined): void {
    const before = retainedAt(channel.name, key)
    const wasCounted = before !== undefined || isDamaged(channel, key)
    channel.state.retained ??= { keys: 0, bytes: 0 }
    channel.state.retained.keys += (after ? 1 : 0) - (wasCounted ? 1 : 0)
    channel.state.retained.bytes += (after ? retainedCost(after) : 0) - (before ? retainedCost(before) : 0)
    channel.retained ??= new Map()
    channel.retained.set(key, after)
  }

  /** It was counted as a key; for how many bytes, nobody knows any more. */
  function isDamaged({ name, state, retained, voided }: ChannelDraft, key: string): boolean {
    if (!state.retained?.keys || voided || retained?.has(key)) return false
    const place = retainedKey(state.number, key)
    const sealed = store.get(place)
    return sealed !== undefined && openRetained(place, sealed, name) === undefined
  }

  function channelNamed(name: string): ChannelDraft {
    let channel = channels.get(name)
    if (!channel) {
      const key = channelKey(name)
      const sealed = store.get(key)
      const known = sealed && openChannelState(key, sealed)
      // A channel that comes back after it was forgotten must not look as if it had never lost anything; and of one whose
      // entry is damaged, nobody knows what it held.
      channel = { key, name, state: known ?? newChannel(sealed ? stored.last : state.forgottenThrough), fresh: [] }
      channels.set(name, channel)
      if (!sealed) state.channels += 1
    }
    return channel
  }

  function newChannel(trimmedThrough: Position): ChannelState {
    const number = state.nextChannel
    state.nextChannel += 1
    const held = { events: 0, bytes: 0, oldestAt: trimming.now, emptySince: trimming.now }
    return { number, newest: origin, trimmedThrough, invalidatedThrough: origin, ...held }
  }

  function record(event: LogEvent): LogEvent {
    events.push(event)
    state.last = event.position
    return event
  }

  function forgetRetained(channel: ChannelDraft): void {
    const { start, end } = retainedRange(channel.state.number)
    for (const { key } of store.range(start, end)) removals.push(key)
    channel.retained?.clear()
    channel.state.retained = { keys: 0, bytes: 0 }
    channel.voided = true
  }

  function touch(name: string, first: Position, events: number): void {
    const before = touched.get(name)
    if (before && events > 0 && before.events > 0) before.events += events
    else touched.set(name, { first, events })
  }

  function push(entry: NewEvent, { position, at }: Place): void {
    const { channel: name, type, data, key, live } = entry
    if (live) {
      record({ kind: 'live', channel: name, type, data, position, at, previous: known(name)?.newest ?? origin })
      return
    }
    const channel = channelNamed(name)
    const previous = channel.state.newest
    const event: LogEvent = { kind: 'event', channel: name, type, data, position, at, previous }
    if (channel.state.events === 0) channel.state.oldestAt = at
    channel.state.events += 1
    channel.state.bytes += type.length + data.length
    channel.state.newest = position
    channel.fresh.push(event)
    if (key !== undefined) retain(channel, key, entry.forget ? undefined : { ...event, key })
    touch(name, position, 1)
    record(event)
  }

  /** What this commit touched. */
  function feedChanges(puts: Entry[]): void {
    const named = [...touched].map(([name, place]) => ({ name, number: channelNamed(name).state.number, ...place }))
    const first = events.find(({ kind }) => kind === 'event' || kind === 'invalidation')?.position
    if (!first) return
    const key = feedKey(first)
    const entry = { first, last: state.last, at: trimming.now, previous: state.feedLast, channels: named }
    puts.push({ key, value: sealFeedEntry(key, entry) })
    state.feedLast = state.last
    state.feedEntries += 1
  }

  /** Lets go of the feed's oldest entries. Once for each commit, or one entry would be counted as two. */
  function trimFeed(): void {
    const isOver = state.feedEntries > maxFeedEntries
    if (!isOver && feedMadeBefore === undefined) return
    const atMost = feedMadeBefore === undefined ? 2 : feedAtATime
    const stale = staleEntries(store, state, feedMadeBefore ?? Number.NEGATIVE_INFINITY, atMost)
    for (const key of stale) removals.push(key)
    state.feedEntries -= stale.length
  }

  return {
    state,
    events,
    append(entries, places) {
      const refusal = refuse(entries)
      if (refusal) return refusal
      for (const [index, entry] of entries.entries()) push(entry, places[index] as Place)
      return undefined
    },
    invalidate(name, { position, at }) {
      const channel = channelNamed(name)
      const previous = channel.state.newest
      for (const { key } of recordsOf(store, channel.state)) removals.push(key)
      channel.fresh = []
      Object.assign(channel.state, { events: 0, bytes: 0, emptySince: at })
      Object.assign(channel.state, { newest: position, trimmedThrough: position, invalidatedThrough: position })
      if (channel.state.retained) forgetRetained(channel)
      touch(name, position, 0)
      return record({ kind: 'invalidation', channel: name, type: '', data: '', position, at, previous })
    },
    end(name, { position, at }) {
      const channel = channelNamed(name)
      const { ended, events, newest: previous } = channel.state
      const entry = { kind: 'end', channel: name, type: '', data: '', at, previous } as const
      if (ended) return { ...entry, position: ended }
      channel.state.ended = position
      if (events === 0) channel.state.emptySince = at
      return record({ ...entry, position })
    },
    sweep(name, emptyBefore) {
      const channel = channelNamed(name)
      channel.forgetEmptyBefore = Math.max(channel.forgetEmptyBefore ?? 0, emptyBefore)
    },
    discard(key) {
      removals.push(key)
      state.channels -= 1
      state.forgottenThrough = stored.last
    },
    sweepFeed(madeBefore) {
      feedMadeBefore = madeBefore
    },
    changes() {
      const puts: Entry[] = []
      for (const channel of channels.values()) {
        if (isForgotten(channel)) {
          removals.push(channel.key)
          state.channels -= 1
          // Its end, too: once that is forgotten, nobody tells of it.
          const lost = latest(channel.state.trimmedThrough, channel.state.ended ?? origin)
          state.forgottenThrough = latest(state.forgottenThrough, lost)
          continue
        }
        const { key, state: changed, fresh } = channel
        const atMost = trimming.atMost + fresh.length
        const allowed = { window: trimming.windows.of(channel.name), now: trimming.now, atMost }
        const { emptied, stale } = trimChannel(store, changed, fresh, allowed)
        for (const emptiedKey of emptied) removals.push(emptiedKey)
        for (const events of inRecords(fresh.slice(stale))) {
          const eventsKey = recordKey(changed.number, (events[0] as LogEvent).position)
          puts.push({ key: eventsKey, value: sealRecord(eventsKey, events) })
        }
        for (const [name, event] of channel.retained ?? []) {
          const place = retainedKey(changed.number, name)
          if (event) puts.push({ key: place, value: sealRetained(place, event) })
          else removals.push(place)
        }
        puts.push({ key, value: sealChannelState(key, changed) })
      }
      feedChanges(puts)
      trimFeed()
      return { puts, removals }
    },
  }
}

type DraftTrimming = Omit<Trimming, 'window'> & { readonly windows: Windows }

interface ChannelDraft {
  readonly key: Buffer
  readonly name: string
  readonly state: ChannelState
  /** Not stored yet. */
  fresh: LogEvent[]
  /** The newest event of keys that this commit changes, undefined where nothing is kept any more. */
  retained?: Map<string, LogEvent | undefined>
  /** What is stored of its keys is to be removed. */
  voided?: boolean
  /** It is to go if it was empty before this time, and nothing has come since: an end or an invalidation either. */
  forgetEmptyBefore?: number
}

function isForgotten({ state, forgetEmptyBefore = 0 }: ChannelDraft): boolean {
  return state.events === 0 && state.emptySince < forgetEmptyBefore && !state.retained?.keys
}

const feedAtATime = 2000

// A reader in the middle of a record decodes all of it, and one of which an event is left is kept whole.
const recordUnits = 64 * 1024
const recordEvents = 1024

function* inRecords(events: readonly LogEvent[]): Generator<readonly LogEvent[]> {
  let start = 0
  let units = 0
  for (let index = 0; index < events.length; index += 1) {
    units += (events[index] as LogEvent).data.length
    const isLast = index === events.length - 1
    if (isLast || units >= recordUnits || index - start === recordEvents - 1) {
      yield start === 0 && isLast ? events : events.slice(start, index + 1)
      start = index + 1
      units = 0
    }
  }
}
