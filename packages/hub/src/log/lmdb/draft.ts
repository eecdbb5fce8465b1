import { latest, origin, type Position } from '@rejoin/protocol'
import type { LogEvent, NewEvent, Place } from '../contract.ts'
import { channelKey, recordKey } from './keys.ts'
import { sealRecord } from './record.ts'
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
  append(entry: NewEvent, place: Place): void
  invalidate(channel: string, place: Place): LogEvent
  /** Brings a channel within its window; forgets it when it was empty before `emptyBefore`. */
  sweep(channel: string, emptyBefore: number): void
  /** Gives up a channel's entry that is damaged: it may have been that of any channel there is not. */
  discard(key: Buffer): void
  changes(): Changes
}

export function createDraft(store: Store, stored: LogState, trimming: Trimming): Draft {
  const state = { ...stored }
  const events: LogEvent[] = []
  const channels = new Map<string, ChannelDraft>()
  const removals: Buffer[] = []

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
    const held = { events: 0, bytes: 0, oldestAt: 0, emptySince: trimming.now }
    return { number, newest: origin, trimmedThrough, invalidatedThrough: origin, ...held }
  }

  function record(event: LogEvent): LogEvent {
    events.push(event)
    state.last = event.position
    return event
  }

  return {
    state,
    events,
    append(entry, { position, at }) {
      const { state: channel, fresh } = channelNamed(entry.channel)
      const { channel: name, type, data } = entry
      const event: LogEvent = { kind: 'event', channel: name, type, data, position, at, previous: channel.newest }
      if (channel.events === 0) channel.oldestAt = at
      channel.events += 1
      channel.bytes += type.length + data.length
      channel.newest = position
      fresh.push(event)
      record(event)
    },
    invalidate(name, { position, at }) {
      const channel = channelNamed(name)
      const previous = channel.state.newest
      for (const { key } of recordsOf(store, channel.state)) removals.push(key)
      channel.fresh = []
      Object.assign(channel.state, { events: 0, bytes: 0, emptySince: at })
      Object.assign(channel.state, { newest: position, trimmedThrough: position, invalidatedThrough: position })
      return record({ kind: 'invalidation', channel: name, type: '', data: '', position, at, previous })
    },
    sweep(name, emptyBefore) {
      const channel = channelNamed(name)
      const { events, emptySince, trimmedThrough } = channel.state
      channel.forgotten = events === 0 && emptySince < emptyBefore
      if (channel.forgotten) state.forgottenThrough = latest(state.forgottenThrough, trimmedThrough)
    },
    discard(key) {
      removals.push(key)
      state.channels -= 1
      state.forgottenThrough = stored.last
    },
    changes() {
      const puts: Entry[] = []
      for (const channel of channels.values()) {
        if (channel.forgotten && channel.fresh.length === 0) {
          removals.push(channel.key)
          state.channels -= 1
          continue
        }
        const { key, state: changed, fresh } = channel
        const allowed = { ...trimming, atMost: trimming.atMost + fresh.length }
        const { emptied, stale } = trimChannel(store, changed, fresh, allowed)
        for (const emptiedKey of emptied) removals.push(emptiedKey)
        for (const events of inRecords(fresh.slice(stale))) {
          const eventsKey = recordKey(changed.number, (events[0] as LogEvent).position)
          puts.push({ key: eventsKey, value: sealRecord(eventsKey, events) })
        }
        puts.push({ key, value: sealChannelState(key, changed) })
      }
      return { puts, removals }
    },
  }
}

interface ChannelDraft {
  readonly key: Buffer
  readonly name: string
  readonly state: ChannelState
  /** Not stored yet. */
  fresh: LogEvent[]
  forgotten?: boolean
}

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
