import { comparePositions, isAfter, origin, type Position, prefixOf } from '@rejoin/protocol'
import type { SliceQueue } from '../../../slice-queue.ts'
import type { ChannelPage, Window } from '../../contract.ts'
import { endedWindow } from '../../ended.ts'
import { lossOf, sumWindows, type Windows, windowOfForgotten } from '../../window.ts'
import { isOverWindow } from '../commit/trim.ts'
import { channelKey } from '../format/keys.ts'
import { isMark } from '../format/marks.ts'
import type { ChannelState } from '../format/state.ts'
import { type ChannelSource, readChannel } from './channel.ts'
import { channelsUnder } from './scan.ts'

export interface WindowSource extends ChannelSource {
  readonly windows: Windows
  /** No forgotten channel has lost anything after this position. */
  readonly forgottenThrough: Position
  now(): number
  /** The stored state of a channel, without the events that have fallen out of its window by now. */
  stateOf(channel: string): ChannelState
  /** Throws once the log is closed. */
  assertOpen(): void
}

/**
 * The window of a channel.
 *
 * @param quick - the stored state, when the caller does not need the position of the oldest event
 */
export function readWindow(source: WindowSource, channel: string, quick?: ChannelState): Window {
  const isQuick = quick !== undefined && !isOverWindow(quick, source.windows.of(channel), source.now())
  const state = isQuick ? quick : source.stateOf(channel)
  const { events, bytes, trimmedThrough, newest } = state
  const ended = state.ended ? endedWindow(state.ended, state.invalidatedThrough) : {}
  // Nothing was trimmed up to a mark: the reader of all events comes to it, and is told there.
  const atMark = (position: Position) => isAfter(position, trimmedThrough) && isMark(source.marks, position)
  const loss = (previous: Position): Pick<Window, 'lost'> => {
    const found = lossOf({ ...state, previous: atMark(previous) ? origin : previous }, source.forgottenThrough)
    return found.lost === 'expired' && isMark(source.marks, trimmedThrough) ? { lost: 'epoch' } : found
  }
  if (events === 0) return { channel, events, bytes, trimmedThrough, ...ended, ...loss(newest) }
  // Without a look at the oldest event, a `trimmedThrough` of forgotten channels counts as a loss. For a pattern it is one.
  if (isQuick) return { channel, events, bytes, trimmedThrough, newest, ...ended, ...loss(trimmedThrough) }
  const first = { after: trimmedThrough, through: newest, limit: { events: 1, bytes: 1 } }
  const read = readChannel(source, channel, state, first)
  const found = 'events' in read ? read.events[0] : undefined
  const oldest = 'events' in read ? found?.position : read.wholeAfter
  const lost = loss(found?.previous ?? newest)
  return { channel, events, bytes, trimmedThrough, newest, ...(oldest ? { oldest } : {}), ...ended, ...lost }
}

/** The window of a pattern. Looks at some channels at a time: a million channels in one turn would hold up everybody. */
export async function readWindowUnder(source: WindowSource, pattern: string, slices: SliceQueue): Promise<Window> {
  const { store } = source
  const prefix = prefixOf(pattern)
  const inSlice = <Result>(task: () => Result) => slices.take(() => store.reading(task))
  let sum = windowOfForgotten(pattern, source.forgottenThrough)
  let oldest: { channels: string[]; at: number } = { channels: [], at: Number.POSITIVE_INFINITY }
  let from: Buffer | undefined
  do {
    const start = from
    from = await inSlice(() => {
      const windows: Window[] = []
      for (const { key, channel, state } of channelsUnder(store, prefix, start)) {
        if (windows.length === channelsAtATime) {
          sum = sumWindows(sum, windows)
          return key
        }
        const window = readWindow(source, channel, state)
        windows.push(window)
        if (!state || window.events === 0 || window.oldest) continue
        if (state.oldestAt < oldest.at) oldest = { channels: [], at: state.oldestAt }
        // The events of one batch share their time, and only a look at the events tells which is the oldest.
        if (state.oldestAt === oldest.at && oldest.channels.length < channelsAtATime) oldest.channels.push(channel)
      }
      sum = sumWindows(sum, windows)
      return undefined
    })
    source.assertOpen()
  } while (from)
  const first = await inSlice(() => oldest.channels.map((channel) => readWindow(source, channel)))
  return { ...sum, ...pickOldest([sum, ...first]) }
}

/** The windows of the next channels with a prefix, in the order of their names. */
export async function readChannels(
  source: WindowSource,
  { prefix, after, limit }: ChannelPage,
  slices: SliceQueue,
): Promise<readonly Window[]> {
  const { store } = source
  const windows: Window[] = []
  let from: Buffer | undefined = channelKey(after > prefix ? after : prefix)
  while (from && windows.length < limit) {
    const start: Buffer = from
    const most = Math.min(limit, windows.length + channelsAtATime)
    from = await slices.take(() =>
      store.reading(() => {
        for (const { key, channel } of channelsUnder(store, prefix, start)) {
          if (windows.length === most) return key
          if (channel !== after) windows.push(readWindow(source, channel))
        }
        return undefined
      }),
    )
    source.assertOpen()
  }
  return windows
}

// These take a millisecond, or some milliseconds when all of them have to be trimmed first.
const channelsAtATime = 256

function pickOldest(windows: readonly Window[]): Pick<Window, 'oldest'> {
  const oldest = windows.flatMap((window) => window.oldest ?? []).sort(comparePositions)[0]
  return oldest ? { oldest } : {}
}
