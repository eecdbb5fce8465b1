import { covers, isAfter, isPattern, latest, type Position } from '@rejoin/protocol'
import { indexAfter, mergeInOrder } from '../../log/in-order.ts'
import { costOf, type Frame } from '../live/frame.ts'

/**
 * The newest events of all channels, already encoded, under one limit of bytes. A reader with a covered cursor is served from
 * here without a read of the log, and can join the live side in the same turn.
 */
export interface HotWindow {
  /** Takes frames in the order of their positions. */
  add(frame: Frame): void
  /** Whether every event of these channels and patterns after `cursor` is here, up to the frame that was added last. */
  covers(selectors: readonly string[], cursor: Position): boolean
  /**
   * The frames of `selectors` after `after`, in order. The slice ends with the frame that reaches `maxBytes`, or sooner when the
   * search for frames of a pattern would take long.
   */
  slice(selectors: readonly string[], after: Position, maxBytes: number): Slice
  /** From now on, no event of this channel up to `position` is served. */
  invalidate(channel: string, position: Position): void
  /** Forgets everything. From now on, only events after `position` are covered. */
  restart(position: Position): void
  /** Counts the changes. While it stands still, a slice stays true. */
  readonly changes: number
}

export interface Slice {
  readonly frames: readonly Frame[]
  /** Whether there may be more after `through`. */
  readonly cut: boolean
  /** All frames up to here are among `frames`. */
  readonly through: Position
}

// Frames that a search looks at, times its selectors. This takes a millisecond.
const searchAtMost = 65_536

export function createHotWindow(start: Position, maxBytes: number): HotWindow {
  const channels = new Map<string, HotChannel>()
  // Frames of all channels, oldest first. The first frame here is also the first of its channel.
  let order: Frame[] = []
  let oldest = 0
  let bytes = 0
  let changes = 0
  // For every channel without an entry.
  let coveredAfter = start
  // For every pattern: the newest position that any channel has lost here.
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

  /** Searches all frames, because a pattern may have more channels than there are frames. */
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
      // The frames stay until they are evicted in their turn. No covered cursor can reach them.
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

/** Replaces an evicted frame until the list is cut, so that the frame itself is not kept as long. */
const gone = undefined as unknown as Frame

interface HotChannel {
  frames: Frame[]
  /** Index of the oldest frame that is held. The entries before it are cut off in bulk. */
  start: number
  coveredAfter: Position
}
