import { covers, isAfter, isPattern, latest, type Position } from '@rejoin/protocol'
import { indexAfter, mergeInOrder } from '../../log/in-order.ts'
import { costOf, type Frame } from '../live/frame.ts'

/**
 * The newest events of all channels, already encoded, under one cap of bytes. A reader whose cursor is covered is served
 * from here without asking the log, and can join the live readers in the same turn.
 */
export interface HotWindow {
  /** Frames come in position order. */
  add(frame: Frame): void
  /** Whether everything of these channels and patterns after `cursor`, up to what was added last, is here. */
  covers(selectors: readonly string[], cursor: Position): boolean
  /**
   * The frames of `selectors` after `after`, in order, cut after the one that reaches `maxBytes`; or sooner, when the search
   * for a pattern's frames would take long.
   */
  slice(selectors: readonly string[], after: Position, maxBytes: number): Slice
  /** Nothing of this channel up to `position` is to be served any more. */
  invalidate(channel: string, position: Position): void
  /** Forgets everything; from now on only what comes after `position` is covered. */
  restart(position: Position): void
  /** How often any of this was changed. Until the next time, a slice stays what it is. */
  readonly changes: number
}

export interface Slice {
  readonly frames: readonly Frame[]
  /** Whether there may be more after `through`. */
  readonly cut: boolean
  /** All frames up to here are among `frames`. */
  readonly through: Position
}

// Frames that a search looks at, times the selectors it looks for: a millisecond.
const searchAtMost = 65_536

export function createHotWindow(start: Position, maxBytes: number): HotWindow {
  const channels = new Map<string, HotChannel>()
  // Oldest first over all channels: what stands in front here stands in front in its channel as well.
  let order: Frame[] = []
  let oldest = 0
  let bytes = 0
  let changes = 0
  // Stands for every channel without an entry.
  let coveredAfter = start
  // Stands for every pattern: the newest position that any channel has lost here.
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

  function merge(selectors: readonly string[], after: Position): Iterable<Frame> {
    const stretches = selectors.map((selector) => {
      const frames = channels.get(selector)?.frames ?? []
      return { items: frames, from: indexAfter(frames, after, channels.get(selector)?.start), to: frames.length }
    })
    return mergeInOrder(stretches)
  }

  /** Through everything that is here: a pattern's channels are more than there are frames, for all we know. */
  function search(selectors: readonly string[], after: Position, maxSliceBytes: number): Slice {
    const frames: Frame[] = []
    let taken = 0
    const first = indexAfter(order, after, oldest)
    const end = Math.min(order.length, first + Math.ceil(searchAtMost / selectors.length))
    let through = after
    for (let index = first; index < end; index += 1) {
      if (taken >= maxSliceBytes) return { frames, cut: true, through }
      const frame = order[index] as Frame
      through = frame.position
      if (!selectors.some((selector) => covers(selector, frame.channel))) continue
      frames.push(frame)
      taken += frame.bytes.length
    }
    return { frames, cut: end < order.length, through }
  }

  return {
    get changes() {
      return changes
    },
    add(frame) {
      changes += 1
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
    covers(selectors, cursor) {
      return selectors.every((selector) => {
        const from = isPattern(selector) ? allCoveredAfter : (channels.get(selector)?.coveredAfter ?? coveredAfter)
        return !isAfter(from, cursor)
      })
    },
    slice(selectors, after, maxSliceBytes) {
      if (selectors.some(isPattern)) return search(selectors, after, maxSliceBytes)
      const frames: Frame[] = []
      let taken = 0
      let through = after
      for (const frame of merge(selectors, after)) {
        if (taken >= maxSliceBytes) return { frames, cut: true, through }
        frames.push(frame)
        taken += frame.bytes.length
        through = frame.position
      }
      return { frames, cut: false, through }
    },
    invalidate(name, position) {
      changes += 1
      // Its frames stay where they are until their turn to be evicted comes: no cursor that is covered can reach them.
      const channel = channels.get(name)
      if (channel) channel.coveredAfter = position
      else coveredAfter = latest(coveredAfter, position)
      allCoveredAfter = latest(allCoveredAfter, position)
    },
    restart(position) {
      changes += 1
      channels.clear()
      order = []
      oldest = 0
      bytes = 0
      coveredAfter = position
      allCoveredAfter = position
    },
  }
}

/** instead of an evicted frame until the list is cut: the frame itself would be kept for as long. */
const gone = undefined as unknown as Frame

interface HotChannel {
  frames: Frame[]
  /** Index of the oldest frame still held; those before it are cut off in bulk. */
  start: number
  coveredAfter: Position
}
