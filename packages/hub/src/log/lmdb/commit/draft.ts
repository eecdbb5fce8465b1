import { type IdFormats, isSame, latest, origin, type Position, type RejoinError } from '@rejoin/protocol'
import type { LogEvent, NewEvent, Stamp } from '../../contract.ts'
import { channelEnded } from '../../ended.ts'
import { eventBytes, retainedBytes } from '../../event-bytes.ts'
import { logEvent } from '../../log-event.ts'
import { rejectRetaining } from '../../retained.ts'
import type { Windows } from '../../window.ts'
import type { Changes, Entry, Store } from '../files/store.ts'
import { maxFeedEntries, sealFeedEntry, staleEntries } from '../format/feed.ts'
import { ageKey, feedKey, retainedKey, retainedRange } from '../format/keys.ts'
import { sealRecords, sealRetained } from '../format/record.ts'
import { type ChannelState, type LogState, sealChannelState } from '../format/state.ts'
import { agedEntry, type Evicted, type Shrinking, shrink } from './budget.ts'
import { createStoredChannels } from './stored-channels.ts'
import { isForgettable, recordsLeftOver, type Trimming, trimChannel } from './trim.ts'

/**
 * One commit in the making. The draft reads the store, takes events and invalidations in position order, and gives the changes of
 * the store in the end. It changes nothing itself, so a commit that fails leaves nothing behind, in memory either.
 */
export interface Draft {
  /** The log's state after the commit. */
  readonly state: LogState
  /** The entries that the tail gets after the commit, in order. */
  readonly events: readonly LogEvent[]
  /** Channels that have more to trim than one commit may. They have to be swept again. */
  readonly unfinished: ReadonlySet<string>
  /**
   * Whether the log still holds more than its budget, and another commit could evict more.
   *
   * A method, not a getter. An object literal with a getter gets a hidden class of its own, and only a full collection frees
   * that class. Until then it keeps the getter and everything in its scope: all events of the commit. With a getter, 377 bytes
   * of each event reached the old generation instead of 175 (batches of 100 over HTTP, `--trace-gc-nvp`, Node 20).
   */
  isOverBudget(): boolean
  /** The formats of the ids after the commit, when the commit changes them. */
  formats?: IdFormats
  /** Appends all entries, or appends none and returns the rejection. */
  append(entries: readonly NewEvent[], stamps: readonly Stamp[]): RejoinError | undefined
  invalidate(channel: string, stamp: Stamp): LogEvent
  /** Ends a channel. For a channel that has ended before, returns the entry of that end. */
  end(channel: string, stamp: Stamp): LogEvent
  /** Brings a channel within its window, and forgets the channel when it has been empty since before `emptyBefore`. */
  sweep(channel: string, emptyBefore: number): void
  /** Removes the damaged entry of a channel. Its name is lost, so every unknown channel counts as one that lost events. */
  discard(key: Buffer): void
  /** Trims the feed: entries that were made before a time, some in each commit. */
  sweepFeed(madeBefore: number): void
  /** Adds changes of keys that belong to no channel. */
  change(changes: Changes): void
  changes(): Changes
}

export function createDraft(store: Store, stored: LogState, trimming: DraftTrimming): Draft {
  const state = { ...stored }
  const events: LogEvent[] = []
  const channels = new Map<string, ChannelDraft>()
  const storedChannels = createStoredChannels(store)
  const removals: Buffer[] = []
  const otherPuts: Entry[] = []
  const unfinished = new Set<string>()
  /** Events that the channels of this commit may still trim, beyond one for each event that comes in. */
  let trimsLeft = trimming.atMost
  /** Channels that the commit's entry in the feed names, for readers of patterns. */
  const touched = new Map<string, { first: Position; events: number }>()
  let feedMadeBefore: number | undefined
  let isOverBudget = false
  const newestMark = trimming.marks.at(-1) ?? origin

  /** The state of a channel, if there is one. Unlike `channelNamed`, this does not make the channel. */
  function known(name: string): ChannelState | undefined {
    return channels.get(name)?.state ?? storedChannels.channel(name).state
  }

  function rejectionOf(entries: readonly NewEvent[]): RejoinError | undefined {
    let checked: string | undefined
    for (const { channel } of entries) {
      // Most entries of a batch are of the same channel as the entry before.
      if (channel !== checked && known(channel)?.ended) return channelEnded(channel)
      checked = channel
    }
    return rejectRetaining(entries, (name) => known(name)?.retained ?? { keys: 0, bytes: 0 }, retainedAt)
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
    // Never below zero: an earlier version counted characters, not bytes.
    channel.state.retained.bytes = Math.max(0, channel.state.retained.bytes + change)
    channel.retained ??= new Map()
    channel.retained.set(key, after)
  }

  /** Whether the stored event of a key is damaged. It was counted as a key, but its bytes are unknown. */
  function isDamaged({ name, state, retained, invalidated }: ChannelDraft, key: string): boolean {
    if (!state.retained?.keys || invalidated || retained?.has(key)) return false
    return storedChannels.value(name, state.number, key) === 'damaged'
  }

  function channelNamed(name: string): ChannelDraft {
    let channel = channels.get(name)
    if (!channel) {
      const { key, isStored, state: known } = storedChannels.channel(name)
      // A channel that comes back after it was forgotten must not look as if it had never lost anything. A channel with a
      // damaged entry may have held anything.
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

  /** The entry before the next one of a channel. After a restore that is the mark, which counts for all channels. */
  function previousOf(channel: ChannelState | undefined): Position {
    return latest(channel?.newest ?? origin, newestMark)
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

  function push(entry: NewEvent, stamp: Stamp): void {
    const { channel: name, data, key, live } = entry
    const { position, at } = stamp
    if (live) {
      record({ ...logEvent(name, entry, data, stamp, previousOf(known(name))), kind: 'live' })
      return
    }
    const channel = channelNamed(name)
    const event = logEvent(name, entry, data, stamp, previousOf(channel.state))
    if (channel.state.events === 0) channel.state.oldestAt = at
    channel.state.events += 1
    channel.state.bytes += eventBytes(event)
    channel.state.newest = position
    channel.fresh.push(event)
    if (key !== undefined) retain(channel, key, entry.forget ? undefined : { ...event, key })
    touch(name, position, 1)
    record(event)
  }

  /** Brings a channel within its window, as far as this commit may. Returns how many of its fresh events need not be stored. */
  function trim({ name, state, fresh, isSwept }: ChannelDraft): number {
    const { windows, now, marks } = trimming
    const allowed = { window: windows.of(name), now, marks, atMost: trimsLeft + fresh.length }
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

  /** In a log with a budget, a channel that holds events is in the order of age, and its bytes are counted. */
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
    // Evicting an event takes as long as publishing one to a channel of its own. This turn does both, so they share the bound.
    const atMost = Math.max(trimming.atMost / 4, trimming.atMost - channels.size)
    const hasShrunk = shrink(store, { bytes, atMost, last: state.last, evict })
    // The channels of this commit enter the order of age when it is stored, so the next commit may find more to evict.
    isOverBudget = state.heldBytes > maxBytes && (hasShrunk || events.length > 0)
  }

  const evict: Shrinking['evict'] = (aged, excess, atMost): Evicted => {
    const known = aged.name === undefined ? undefined : channels.get(aged.name)
    const it = known?.state ?? (aged.name === undefined ? undefined : storedChannels.channel(aged.name).state)
    const isCurrent = it?.number === aged.number && it.agedAt !== undefined && isSame(it.agedAt, aged.position)
    if (aged.name === undefined || !isCurrent || known?.isGone) {
      removals.push(aged.key)
      return { bytes: 0, steps: 1, position: undefined }
    }
    const channel = channelNamed(aged.name)
    const before = channel.state.bytes
    const { windows, now, marks } = trimming
    const allowed = { window: windows.of(channel.name), now, marks, atMost, excess }
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
    // A sweep writes the entry again, because it may have been damaged and removed.
    if (agedAt && (!isSameAge || isSwept)) puts.push(agedEntry(agedAt, number, name))
  }

  /** Adds the commit's entry to the feed. */
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

  /** Trims the oldest entries of the feed. Called once per commit: a second call would count the same entries again. */
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
    isOverBudget: () => isOverBudget,
    append(entries, stamps) {
      const rejection = rejectionOf(entries)
      if (rejection) return rejection
      for (let index = 0; index < entries.length; index += 1) push(entries[index] as NewEvent, stamps[index] as Stamp)
      return undefined
    },
    invalidate(name, { position, at }) {
      const channel = channelNamed(name)
      const previous = previousOf(channel.state)
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
      const { ended, events } = channel.state
      const previous = previousOf(channel.state)
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
    change(changes) {
      otherPuts.push(...changes.puts)
      removals.push(...changes.removals)
    },
    changes() {
      const puts = otherPuts
      for (const channel of channels.values()) {
        const canGo = isForgettable(channel.state, channel.forgetEmptyBefore ?? 0)
        if (canGo && recordsLeftOver(store, channel.state, 1).length === 0) {
          channel.isGone = true
          removals.push(channel.key)
          state.channels -= 1
          // The end counts, too: a reader from before it has to be told, and the log forgets the end with the channel.
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
        puts.push(...sealRecords(changed.number, fresh))
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
  /** The bytes that all channels may hold together; undefined when only their windows bound them. */
  readonly maxBytes: number | undefined
}

interface ChannelDraft {
  readonly key: Buffer
  readonly name: string
  readonly state: ChannelState
  /** Events of this commit, which are not stored yet. */
  fresh: LogEvent[]
  /** The bytes of this channel that are part of the log's `heldBytes`. */
  counted: number
  /** The position of the channel in the stored order of age. */
  readonly agedBefore: Position | undefined
  /** This commit forgets the channel. */
  isGone?: boolean
  /** The newest event of each key that this commit changes; undefined for a key that is forgotten. */
  retained?: Map<string, LogEvent | undefined>
  /** This commit removes the stored events of all keys. */
  invalidated?: boolean
  /** This commit also removes records of which the channel holds nothing any more. */
  isSwept?: boolean
  /**
   * The commit forgets the channel if it has been empty since before this time. An end and an invalidation begin that time
   * anew.
   */
  forgetEmptyBefore?: number
}

const feedAtATime = 2000
