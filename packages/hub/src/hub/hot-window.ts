import { covers, isAfter, isPattern, latest, type Position } from '@rejoin/protocol'
import { indexAfter, mergeInOrder } from '../log/in-order.ts'
import { costOf, type Frame } from './frame.ts'

/**
 * The newest events of all channels, already encoded, under one cap of bytes. A reader whose cursor is covered is served
 * from here without asking the log, and can join the live readers in the same turn.
 */
export interface HotWindow {
  /** Frames come in position order. */
  add(frame: Frame): void
  /** Whether everything of these channels and patterns after `cursor`, up to what was added last, is here. */
  covers(names: readonly string[], cursor: Position): boolean
  /**
   * The frames of `names` after `after`, in order, cut after the one that reaches `maxBytes`; or sooner, when the search
   * for a pattern's frames would take long.
   */
  slice(names: readonly string[], after: Position, maxBytes: number): Slice
  /** Nothing of this channel up to `position` is to be served any more. */
  invalidate(channel: string, position: Position): void
  /** Forgets everything; from now on only what comes after `position` is covered. */
  restart(position: Position): void
}

export interface Slice {
  readonly frames: readonly Frame[]
  /** Whether there may be more after `through`. */
  readonly cut: boolean
  /** All frames up to here are among `frames`. */
  readonly through: Position
}

// Frames that a search looks at, times the names it looks for: a millisecond.
const searchAtMost = 65_536

export function createHotWindow(start: Position, maxBytes: number): HotWindow {
  const channels = new Map<string, HotChannel>()
  // Oldest first over all channels: what stands in front here stands in front in its channel as well.
  let order: Frame[] = []
  let oldest = 0
  let bytes = 0
  // Stands for every channel without an entry.
  let coveredAfter = start
  // Stands for every pattern: the newest place that any channel has lost here.
  let allCoveredAfter = start

  function evict(): void {
    const frame = order[oldest] as Frame
    order[oldest] = gone
    oldest += 1
    bytes -= costOf(frame)
    const channel = channels.get(frame.channel) as HotChannel
    channel.frames[channel.start] = gone
    channel.start += 1
    channel.coveredAfter = latest(channel.coveredAfter, frame.position)
    allCoveredAfter = latest(allCoveredAfter, frame.position)
    if (channel.start === channel.frames.length) {
      channels.delete(frame.channel)
      coveredAfter = latest(coveredAfter, channel.coveredAfter)
    } else if (channel.start * 2 > channel.frames.length) {
      channel.frames = channel.frames.slice(channel.start)
      channel.start = 0
    }
    if (oldest * 2 > order.length) {
      order = order.slice(oldest)
      oldest = 0
    }
  }

  function merge(names: readonly string[], after: Position): Iterable<Frame> {
    const stretches = names.map((name) => {
      const frames = channels.get(name)?.frames ?? []
      return { items: frames, from: indexAfter(frames, after, channels.get(name)?.start), to: frames.length }
    })
    return mergeInOrder(stretches)
  }

  /** Through everything that is here: a pattern's channels are more than there are frames, for all we know. */
  function search(names: readonly string[], after: Position, maxSliceBytes: number): Slice {
    const frames: Frame[] = []
    let taken = 0
    const first = indexAfter(order, after, oldest)
    const end = Math.min(order.length, first + Math.ceil(searchAtMost / names.length))
    let through = after
    for (let index = first; index < end; index += 1) {
      if (taken >= maxSliceBytes) return { frames, cut: true, through }
      const frame = order[index] as Frame
      through = frame.position
      if (!names.some((name) => covers(name, frame.channel))) continue
      frames.push(frame)
      taken += frame.bytes.length
    }
    return { frames, cut: end < order.length, through }
  }

  return {
    add(frame) {
      let channel = channels.get(frame.channel)
      if (!channel) {
        channel = { frames: [], start: 0, coveredAfter }
        channels.set(frame.channel, channel)
      }
      channel.frames.push(frame)
      order.push(frame)
      bytes += costOf(frame)
      while (bytes > maxBytes) evict()
    },
    covers(names, cursor) {
      return names.every((name) => {
        const from = isPattern(name) ? allCoveredAfter : (channels.get(name)?.coveredAfter ?? coveredAfter)
        return !isAfter(from, cursor)
      })
    },
    slice(names, after, maxSliceBytes) {
      if (names.some(isPattern)) return search(names, after, maxSliceBytes)
      const frames: Frame[] = []
      let taken = 0
      let through = after
      for (const frame of merge(names, after)) {
        if (taken >= maxSliceBytes) return { frames, cut: true, through }
        frames.push(frame)
        taken += frame.bytes.length
        through = frame.position
      }
      return { frames, cut: false, through }
    },
    invalidate(name, position) {
      // Its frames stay where they are until their turn to be evicted comes: no cursor that is covered can reach them.
      const channel = channels.get(name)
      if (channel) channel.coveredAfter = position
      else coveredAfter = latest(coveredAfter, position)
      allCoveredAfter = latest(allCoveredAfter, position)
    },
    restart(position) {
      channels.clear()
      order = []
      oldest = 0
      bytes = 0
      coveredAfter = position
      allCoveredAfter = position
    },
  }
}

/** In the place of an evicted frame until the list is cut: the frame itself would be kept for as long. */
const gone = undefined as unknown as Frame

interface HotChannel {
  frames: Frame[]
  /** Index of the oldest frame still held; those before it are cut off in bulk. */
  start: number
  coveredAfter: Position
}
