import { type IdFormats, isSame, latest, origin, type Position, type RejoinError } from '@rejoin/protocol'
import type { LogEvent, NewEvent, Stamp } from '../contract.ts'
import { channelEnded } from '../ended.ts'
import { eventBytes, retainedBytes } from '../event-bytes.ts'
import { refuseRetaining } from '../retained.ts'
import type { Windows } from '../window.ts'
import { type LetGo, type Shrinking, shrink } from './budget.ts'
import { agedEntry } from './by-age.ts'
import { maxFeedEntries, sealFeedEntry, staleEntries } from './feed.ts'
import { ageKey, feedKey, recordKey, retainedKey, retainedRange } from './keys.ts'
import { sealRecord } from './record.ts'
import { sealRetained } from './retained.ts'
import { type ChannelState, type LogState, sealChannelState } from './state.ts'
import type { Changes, Entry, Store } from './store.ts'
import { createStoredChannels } from './stored-channels.ts'
import { recordsLeftOver, type Trimming, trimChannel } from './trim.ts'

/**
 * One commit in the making. It reads what is stored, takes events and invalidations in position order, and says in the end
 * what has to change. Nothing is touched before that: a commit that fails leaves nothing behind, in memory either.
 */
export interface Draft {
  /** What the log's state will be. */
  readonly state: LogState
  /** Everything the tail has to be told once it is committed, in order. */
  readonly events: readonly LogEvent[]
  /** Channels that had more to let go of than one commit may take. To be swept again. */
  readonly unfinished: ReadonlySet<string>
  /** Whether the log still holds more than its budget, and another commit would come nearer to it. */
  readonly isOverBudget: boolean
  /** How ids will be written, where that changes. */
  formats?: IdFormats
  /** Appends them all, or says why it cannot. */
  append(entries: readonly NewEvent[], stamps: readonly Stamp[]): RejoinError | undefined
  invalidate(channel: string, stamp: Stamp): LogEvent
  /** Ends a channel; of one that has ended, gives the entry of then. */
  end(channel: string, stamp: Stamp): LogEvent
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
  const storedChannels = createStoredChannels(store)
  const removals: Buffer[] = []
  const unfinished = new Set<string>()
  /** What all channels of this commit may still let go of, beyond one event for each that comes. */
  let trimsLeft = trimming.atMost
  /** Channels that readers of patterns have to be told of. */
  const touched = new Map<string, { first: Position; events: number }>()
  let feedMadeBefore: number | undefined
  let isOverBudget = false

  /** What is known of a channel, which this does not make. */
  function known(name: string): ChannelState | undefined {
    return channels.get(name)?.state ?? storedChannels.channel(name).state
  }

  function rejectionOf(entries: readonly NewEvent[]): RejoinError | undefined {
    const names = new Set(entries.map((entry) => entry.channel))
    for (const name of names) if (known(name)?.ended) return channelEnded(name)
    return refuseRetaining(entries, (name) => known(name)?.retained ?? { keys: 0, bytes: 0 }, retainedAt)
  }

  function retainedAt(name: string, key: string): LogEvent | undefined {
    const draft = channels.get(name)
    if (draft?.retained?.has(key)) return draft.retained.get(key)
    const state = known(name)
    if (!state?.retained?.keys || draft?.invalidated) return undefined
    const value = storedChannels.value(name, state.number, key)
    return value === 'damaged' ? undefined : value
  }

  function retain(channel: ChannelDraft, key: string, after: LogEvent | undefined): void {
    const before = retainedAt(channel.name, key)
    const wasCounted = before !== undefined || isDamaged(channel, key)
    channel.state.retained ??= { keys: 0, bytes: 0 }
    channel.state.retained.keys += (after ? 1 : 0) - (wasCounted ? 1 : 0)
    const change = (after ? retainedBytes(after) : 0) - (before ? retainedBytes(before) : 0)
    // Never below zero: a folder of an earlier version has counted characters.
    channel.state.retained.bytes = Math.max(0, channel.state.retained.bytes + change)
    channel.retained ??= new Map()
    channel.retained.set(key, after)
  }

  /** It was counted as a key; for how many bytes, nobody knows any more. */
  function isDamaged({ name, state, retained, invalidated }: ChannelDraft, key: string): boolean {
    if (!state.retained?.keys || invalidated || retained?.has(key)) return false
    return storedChannels.value(name, state.number, key) === 'damaged'
  }

  function channelNamed(name: string): ChannelDraft {
    let channel = channels.get(name)
    if (!channel) {
      const { key, isStored, state: known } = storedChannels.channel(name)
      // A channel that comes back after it was forgotten must not look as if it had never lost anything; and of one whose
      // entry is damaged, nobody knows what it held.
      const found = known ?? newChannel(isStored ? stored.last : state.forgottenThrough)
      const counted = known?.agedAt ? known.bytes : 0
      channel = { key, name, state: found, fresh: [], counted, agedBefore: known?.agedAt }
      channels.set(name, channel)
      if (!isStored) state.channels += 1
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
    channel.invalidated = true
  }

  function touch(name: string, first: Position, events: number): void {
    const before = touched.get(name)
    if (before && events > 0 && before.events > 0) before.events += events
    else touched.set(name, { first, events })
  }

  function push(entry: NewEvent, { position, at }: Stamp): void {
    const { channel: name, type, data, content, key, live } = entry
    const texts = content && { content }
    if (live) {
      const previous = known(name)?.newest ?? origin
      record({ kind: 'live', channel: name, type, data, position, at, previous, ...texts })
      return
    }
    const channel = channelNamed(name)
    const previous = channel.state.newest
    const event: LogEvent = { kind: 'event', channel: name, type, data, position, at, previous, ...texts }
    if (channel.state.events === 0) channel.state.oldestAt = at
    channel.state.events += 1
    channel.state.bytes += eventBytes(event)
    channel.state.newest = position
    channel.fresh.push(event)
    if (key !== undefined) retain(channel, key, entry.forget ? undefined : { ...event, key })
    touch(name, position, 1)
    record(event)
  }

  /** Brings a channel within its window, as far as this commit may. Gives how many of its fresh events need not be stored. */
  function trim({ name, state, fresh, isSwept }: ChannelDraft): number {
    const allowed = { window: trimming.windows.of(name), now: trimming.now, atMost: trimsLeft + fresh.length }
    const { emptied, stale, steps, isCutShort } = trimChannel(store, state, fresh, allowed)
    trimsLeft -= Math.max(0, steps - fresh.length)
    for (const key of emptied) removals.push(key)
    if (isCutShort) unfinished.add(name)
    if (isSwept && steps === 0) removeLeftOver(name, state)
    return stale
  }

  function removeLeftOver(name: string, state: ChannelState): void {
    const keys = recordsLeftOver(store, state, trimsLeft + 1)
    if (keys.length > trimsLeft) unfinished.add(name)
    for (const key of keys.slice(0, trimsLeft)) removals.push(key)
    trimsLeft -= Math.min(trimsLeft, keys.length)
  }

  /** In a log with a budget, a channel that holds something stands in the order of age, and its bytes are counted. */
  function count(channel: ChannelDraft): void {
    const { state: it, fresh } = channel
    if (it.events === 0) delete it.agedAt
    else if (!it.agedAt && trimming.maxBytes !== undefined) {
      const isAllFresh = it.events === fresh.length
      it.agedAt = isAllFresh ? (fresh[0] as LogEvent).position : it.trimmedThrough
    }
    const counted = it.agedAt ? it.bytes : 0
    state.heldBytes = Math.max(0, state.heldBytes + counted - channel.counted)
    channel.counted = counted
  }

  function keepToBudget(maxBytes: number): void {
    const bytes = state.heldBytes - maxBytes
    if (bytes <= 0) return
    // To let go of an event takes as long as to publish one to a channel of its own, and both are done in one turn.
    const atMost = Math.max(trimming.atMost / 4, trimming.atMost - channels.size)
    const hasShrunk = shrink(store, { bytes, atMost, last: state.last, letGo })
    // What came with this commit stands in the order once it is stored.
    isOverBudget = state.heldBytes > maxBytes && (hasShrunk || events.length > 0)
  }

  const letGo: Shrinking['letGo'] = (aged, excess, atMost): LetGo => {
    const known = aged.name === undefined ? undefined : channels.get(aged.name)
    const it = known?.state ?? (aged.name === undefined ? undefined : storedChannels.channel(aged.name).state)
    const stands = it?.number === aged.number && it.agedAt !== undefined && isSame(it.agedAt, aged.position)
    if (aged.name === undefined || !stands || known?.isGone) {
      removals.push(aged.key)
      return { bytes: 0, steps: 1, position: undefined }
    }
    const channel = channelNamed(aged.name)
    const before = channel.state.bytes
    const allowed = { window: trimming.windows.of(channel.name), now: trimming.now, atMost, excess }
    const { emptied, stale, steps, kept } = trimChannel(store, channel.state, channel.fresh, allowed)
    for (const key of emptied) removals.push(key)
    if (stale > 0) channel.fresh = channel.fresh.slice(stale)
    channel.state.agedAt = kept ?? channel.state.trimmedThrough
    count(channel)
    return { bytes: before - channel.state.bytes, steps: Math.max(1, steps), position: channel.state.agedAt }
  }

  function ageChanges({ name, state: it, agedBefore, isSwept }: ChannelDraft, puts: Entry[]): void {
    const { agedAt, number } = it
    const isSameAge = agedAt && agedBefore ? isSame(agedAt, agedBefore) : agedAt === agedBefore
    if (agedBefore && !isSameAge) removals.push(ageKey(agedBefore, number))
    // The entry of a channel that is swept may have been damaged and removed.
    if (agedAt && (!isSameAge || isSwept)) puts.push(agedEntry(agedAt, number, name))
  }

  /** What this commit touched. */
  function feedChanges(puts: Entry[]): void {
    const named = [...touched].map(([name, touch]) => ({ name, number: channelNamed(name).state.number, ...touch }))
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
    unfinished,
    get isOverBudget() {
      return isOverBudget
    },
    append(entries, stamps) {
      const rejection = rejectionOf(entries)
      if (rejection) return rejection
      for (const [index, entry] of entries.entries()) push(entry, stamps[index] as Stamp)
      return undefined
    },
    invalidate(name, { position, at }) {
      const channel = channelNamed(name)
      const previous = channel.state.newest
      channel.isSwept = true
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
      channel.isSwept = true
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
        if (isForgotten(channel) && recordsLeftOver(store, channel.state, 1).length === 0) {
          channel.isGone = true
          removals.push(channel.key)
          state.channels -= 1
          // Its end, too: once that is forgotten, nobody tells of it.
          const lost = latest(channel.state.trimmedThrough, channel.state.ended ?? origin)
          state.forgottenThrough = latest(state.forgottenThrough, lost)
        } else {
          const stale = trim(channel)
          if (stale > 0) channel.fresh = channel.fresh.slice(stale)
        }
        count(channel)
      }
      if (trimming.maxBytes !== undefined) keepToBudget(trimming.maxBytes)
      for (const channel of channels.values()) {
        ageChanges(channel, puts)
        if (channel.isGone) continue
        const { key, state: changed, fresh } = channel
        for (const events of inRecords(fresh)) {
          const eventsKey = recordKey(changed.number, (events[0] as LogEvent).position)
          puts.push({ key: eventsKey, value: sealRecord(eventsKey, events) })
        }
        for (const [name, event] of channel.retained ?? []) {
          const storeKey = retainedKey(changed.number, name)
          if (event) puts.push({ key: storeKey, value: sealRetained(storeKey, event) })
          else removals.push(storeKey)
        }
        puts.push({ key, value: sealChannelState(key, changed) })
      }
      feedChanges(puts)
      trimFeed()
      return { puts, removals }
    },
  }
}

interface DraftTrimming extends Omit<Trimming, 'window' | 'excess'> {
  readonly windows: Windows
  /** What all channels may hold together; undefined when only their windows bound them. */
  readonly maxBytes: number | undefined
}

interface ChannelDraft {
  readonly key: Buffer
  readonly name: string
  readonly state: ChannelState
  /** Not stored yet. */
  fresh: LogEvent[]
  /** What of its bytes is counted in the log's. */
  counted: number
  /** Where it stands in the stored order of age. */
  readonly agedBefore: Position | undefined
  /** It is forgotten by this commit. */
  isGone?: boolean
  /** The newest event of keys that this commit changes, undefined where nothing is kept any more. */
  retained?: Map<string, LogEvent | undefined>
  /** What is stored of its keys is to be removed. */
  invalidated?: boolean
  /** Records that are left over are removed as well. */
  isSwept?: boolean
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
