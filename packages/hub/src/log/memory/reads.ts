import { isAfter, latest, origin, type Position } from '@rejoin/protocol'
import type { SliceQueue } from '../../slice-queue.ts'
import type { ChannelRing } from '../channel-ring.ts'
import type { BackPage, LogEvent, PageLimit, TypedPosition } from '../contract.ts'
import { eventBytes } from '../event-bytes.ts'
import type { Stretch } from '../in-order.ts'
import type { PartRead } from '../merged-page.ts'
import { addLoss, type Lost, lossAfter, type PageRange, type SelectorRead } from '../selector-read.ts'
import { createWidePage } from '../wide-page.ts'
import type { MemoryFeed } from './feed.ts'

/** The ways to read a log in memory: by the ring of a channel, by the feed, or by a look at every channel. */
export interface MemoryReads {
  channel(name: string, range: PageRange): SelectorRead
  /** The events of all channels with a prefix; undefined when the feed does not reach back to the start of the range. */
  byFeed(prefix: string, range: PageRange): SelectorRead | undefined
  /** The loss of the channels with a prefix, as far as the feed leads to these channels within the time of one page. */
  lossByFeed(prefix: string, range: Pick<PageRange, 'after' | 'through'>): Lost | undefined
  /** Like `byFeed`, by a look at every channel instead of the feed. */
  every(prefix: string, range: PageRange): Promise<SelectorRead>
  channelBack(name: string, after: Position, through: Position, most: number): BackPage
  /** Undefined when the feed does not reach back to `through`. */
  feedBack(prefixes: readonly string[], after: Position, through: Position, most: number): BackPage | undefined
}

export interface MemoryReadsOptions {
  readonly channels: ReadonlyMap<string, ChannelRing>
  readonly feed: MemoryFeed
  /** The `trimmedThrough` of every channel that is not in the map. */
  forgottenThrough(): Position
  now(): number
  readonly slices: SliceQueue
  /** Throws once the log is closed. */
  assertOpen(): void
}

// Entries of the feed that one page looks at. A page must not take longer than a millisecond or two, also when all new events
// are of other channels.
const lookedAtATime = 4096
// Events that one slice reads for a page that looks at every channel.
const eventsAtATime = 4096

export function createMemoryReads({
  channels,
  feed,
  forgottenThrough,
  now,
  slices,
  assertOpen,
}: MemoryReadsOptions): MemoryReads {
  return { channel, byFeed, lossByFeed, every, channelBack, feedBack }

  function channel(name: string, { after, through, limit }: PageRange): SelectorRead {
    const ring = channels.get(name)
    if (!ring) return lossAfter(forgotten(), after) ?? { events: [], through }
    ring.trim(now())
    return lossAfter(ring, after) ?? takePart(ring.between(after, through), through, limit)
  }

  function byFeed(prefix: string, { after, through, limit }: PageRange): SelectorRead | undefined {
    if (isAfter(feed.droppedThrough, after)) return undefined
    const at = now()
    const events: LogEvent[] = []
    const checked = new Set<ChannelRing>()
    if (isAfter(forgottenThrough(), after)) return lossByFeed(prefix, { after, through })
    let bytes = 0
    let looked = 0
    for (const { position, channel, ring } of feed.after(after)) {
      if (isAfter(position, through)) break
      if (channel.startsWith(prefix)) {
        if (!checked.has(ring)) {
          checked.add(ring)
          ring.trim(at)
          const lost = lossAfter(ring, after)
          if (lost) return addLoss(lost, lossByFeed(prefix, { after, through }))
        }
        const event = ring.at(position)
        if (event) {
          events.push(event)
          bytes += eventBytes(event)
          if (events.length >= limit.events || bytes >= limit.bytes) return { events, through: position }
        }
      }
      looked += 1
      if (looked === lookedAtATime) return { events, through: position }
    }
    return { events, through }
  }

  function lossByFeed(prefix: string, { after, through }: Pick<PageRange, 'after' | 'through'>): Lost | undefined {
    const at = now()
    // Any forgotten channel may have had this prefix.
    let lost = lossAfter(forgotten(), after)
    let looked = 0
    for (const { position, channel, ring } of feed.after(after)) {
      if (isAfter(position, through) || looked === lookedAtATime) return lost
      looked += 1
      if (!channel.startsWith(prefix)) continue
      ring.trim(at)
      lost = addLoss(lost, lossAfter(ring, after))
    }
    return lost
  }

  async function every(prefix: string, range: PageRange): Promise<SelectorRead> {
    const { after, limit } = range
    const page = createWidePage(range)
    const walk = channels[Symbol.iterator]()
    const lookAtSome = () => {
      assertOpen()
      const at = now()
      let left = eventsAtATime
      for (let looked = 0; looked < lookedAtATime / 8 && left > 0; looked += 1) {
        const { done, value } = walk.next()
        if (done) return true
        const [name, ring] = value
        // A channel without anything newer has lost nothing after the position either.
        const hasNews = isAfter(ring.newest, after) || isAfter(ring.trimmedThrough, after)
        if (!hasNews || !name.startsWith(prefix)) continue
        ring.trim(at)
        const read = lossAfter(ring, after) ?? takePart(ring.between(after, page.through), page.through, limit)
        page.add([read])
        if ('events' in read) left -= read.events.length
      }
      return false
    }
    for (let isDone = false; !isDone; ) isDone = await slices.take(lookAtSome)
    // After the look, because the look misses a channel that is forgotten meanwhile.
    const lost = lossAfter(forgotten(), after)
    if (lost) page.add([lost])
    return page.result()
  }

  function channelBack(name: string, after: Position, through: Position, most: number): BackPage {
    const ring = channels.get(name)
    ring?.trim(now())
    const wholeAfter = latest(after, ring?.trimmedThrough ?? forgottenThrough())
    const positions: TypedPosition[] = []
    if (!ring) return { positions, completeAfter: wholeAfter, wholeAfter }
    const { items, from, to } = ring.between(wholeAfter, through)
    for (let index = to - 1; index >= from; index -= 1) {
      const event = items[index] as LogEvent
      if (positions.length === most) return { positions, completeAfter: event.position, wholeAfter }
      positions.push(event)
    }
    return { positions, completeAfter: wholeAfter, wholeAfter }
  }

  function feedBack(
    prefixes: readonly string[],
    after: Position,
    through: Position,
    most: number,
  ): BackPage | undefined {
    const { droppedThrough } = feed
    if (!isAfter(through, droppedThrough)) return undefined
    const at = now()
    const positions: TypedPosition[] = []
    let wholeAfter = latest(after, forgottenThrough())
    // Each entry is compared with every prefix.
    let left = Math.ceil(lookedAtATime / prefixes.length)
    for (const { position, channel, ring } of feed.upTo(through)) {
      if (!isAfter(position, wholeAfter)) return { positions, completeAfter: wholeAfter, wholeAfter }
      if (positions.length === most || left === 0) return { positions, completeAfter: position, wholeAfter }
      left -= 1
      if (!prefixes.some((prefix) => channel.startsWith(prefix))) continue
      ring.trim(at)
      // The walk meets the newest entry of a channel first, so the loss of the channel is known before its older entries come.
      wholeAfter = latest(wholeAfter, ring.trimmedThrough)
      const event = ring.at(position)
      if (event) positions.push(event)
    }
    return { positions, completeAfter: latest(droppedThrough, wholeAfter), wholeAfter }
  }

  function forgotten() {
    return { trimmedThrough: forgottenThrough(), invalidatedThrough: origin }
  }
}

function takePart({ items, from, to }: Stretch<LogEvent>, through: Position, limit: PageLimit): PartRead {
  let bytes = 0
  for (let index = from; index < to; index += 1) {
    const event = items[index] as LogEvent
    bytes += eventBytes(event)
    const isFull = index - from + 1 >= limit.events || bytes >= limit.bytes
    if (isFull) return { events: items.slice(from, index + 1), through: event.position }
  }
  return { events: items.slice(from, to), through }
}
