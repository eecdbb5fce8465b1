import { comparePositions, isAfter, latest, type Position } from '@rejoin/protocol'
import type { LogEvent, PageLimit, TailBatch } from '../../contract.ts'
import { mergePages } from '../../merged-page.ts'
import type { Store } from '../files/store.ts'
import { afterChannels, channelKey, channelOf } from '../format/keys.ts'
import type { ChannelState } from '../format/state.ts'
import { type ChannelEvents, readChannel } from './channel.ts'

/** The first batch of a tail that is opened in the past. It begins after the newest position where an event is missing. */
export function readBacklog(source: BacklogSource, after: Position, through: Position): TailBatch {
  const { store, forgottenThrough, stateOf } = source
  let from = latest(after, forgottenThrough)
  const changed: [name: string, state: ChannelState][] = []
  const ends: LogEvent[] = []
  for (const { key } of store.range(channelKey(''), afterChannels)) {
    const state = stateOf(channelOf(key))
    from = latest(from, state.trimmedThrough)
    if (isAfter(state.newest, after)) changed.push([channelOf(key), state])
    if (state.ended) ends.push(endOf(channelOf(key), state))
  }
  for (;;) {
    const range = { after: from, through, limit: everything }
    const reads = changed.map(([name, state]) => readChannel(store, name, state, range))
    // Without a limit, only a gap cuts a read short.
    const gaps = reads.flatMap((read) => {
      if ('wholeAfter' in read) return read.wholeAfter
      return read.cut ? (read.events.at(-1) as LogEvent).position : []
    })
    if (gaps.length === 0) {
      const whole = reads.map((read) => ({ events: (read as ChannelEvents).events, through }))
      const { events } = mergePages(whole, range)
      const later = ends.filter((end) => isAfter(end.position, from))
      return { after: from, events: [...events, ...later].sort((a, b) => comparePositions(a.position, b.position)) }
    }
    from = gaps.reduce(latest, from)
  }
}

export interface BacklogSource {
  readonly store: Store
  readonly forgottenThrough: Position
  /** The stored state of a channel, without the events that have fallen out of its window by now. */
  stateOf(channel: string): ChannelState
}

/** The entry of a channel's end. The store does not keep the time of an end, so the time is that of the position. */
function endOf(channel: string, { ended, newest }: ChannelState): LogEvent {
  const position = ended as Position
  return { kind: 'end', channel, type: '', data: '', position, at: position.ms, previous: newest }
}

const everything: PageLimit = { events: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }
