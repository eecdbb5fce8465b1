import {
  type Branch,
  type Clock,
  comparePositions,
  createClock,
  createEpoch,
  createIdFormats,
  type IdCodec,
  isAfter,
  isPattern,
  latest,
  openBranch,
  origin,
  type Position,
  prefixOf,
  RejoinError,
  ulid,
} from '@rejoin/protocol'
import type { Cancel, Environment } from '../environment.ts'
import { type SliceQueue, sliceQueueOf, walkInSlices } from '../slice-queue.ts'
import { mergeBackPages, shareOfBackPage } from './back-pages.ts'
import { byteCost, ChannelRing } from './channel-ring.ts'
import {
  type Appended,
  type AppendOptions,
  type BackPage,
  type ChannelPage,
  type Log,
  type LogEvent,
  type LogSource,
  type NewEvent,
  type Page,
  type PageLimit,
  type Place,
  retainLimits,
  type Tail,
  type TailBatch,
  type TypedPlace,
  type Window,
  type WindowOptions,
} from './contract.ts'
import { channelEnded } from './ended.ts'
import { createIdempotency, type Idempotency, type IdempotencyOptions } from './idempotency.ts'
import { mergeInOrder, type Stretch } from './in-order.ts'
import { createMemoryFeed } from './memory-feed.ts'
import type { PartRead } from './merged-page.ts'
import { addLoss, type Lost, lossAfter, type NameRead, type PageRange, pageOf } from './name-read.ts'
import { inOnePiece, refuseRetaining } from './retained.ts'
import { createWidePage } from './wide-page.ts'
import { type ChannelWindows, createWindows, sumWindows, type Windows, windowOf } from './window.ts'

export interface MemoryLogOptions {
  /** What each channel keeps. */
  window?: WindowOptions
  /** Other windows for some channels or patterns: `{ 'prices/*': { maxEvents: 10 } }`. The narrowest name counts. */
  windows?: ChannelWindows
  /**
   * How ids are written. `snowflake` is refused: its branch tag is a counter that a log without a memory cannot keep.
   * @defaultValue ulid()
   */
  codec?: IdCodec
  /**
   * How long an empty channel is remembered. Forgetting one costs an announced gap to readers of unknown channels whose
   * cursor is older than that, and frees about 400 bytes.
   * A channel that has ended takes events again once it is forgotten; readers from before its end are told of a gap.
   * @defaultValue 2592000000 (30 days)
   */
  forgetAfterMs?: number
  /** For how long and how many publishes a repeated `Idempotency-Key` is recognised. */
  idempotency?: IdempotencyOptions
}

/**
 * A log in this process's memory. Each start is a new branch that continues nothing, so a reader that held an id of an
 * earlier process is told of a gap.
 */
export function memoryLog(options: MemoryLogOptions = {}): LogSource {
  const codec = options.codec ?? ulid()
  if (codec.lasting) {
    throw new RejoinError(`The ${codec.name} codec needs a log that survives restarts. Use ulid() with memoryLog().`, {
      code: 'invalid-option',
    })
  }
  return { name: 'memory', open: async (environment) => new MemoryLog(codec, options, environment) }
}

// Aged-out events of idle channels are let go at this pace, so an age bound is exceeded by at most this much memory-wise;
// reads apply the age themselves and never serve an event past it.
const sweepEveryMs = 10_000
// Each may let go of its whole window.
const sweptAtATime = 64
// Entries of the feed in one page: a page must not take longer than a millisecond or two, also when all the news is of others.
const lookedAtATime = 4096
// Channels in one step of a page that is made by a look at every one of them.
const readAtATime = 128

class MemoryLog implements Log {
  readonly name = 'memory'
  readonly durability = 'memory'
  readonly window: Required<WindowOptions>
  readonly formats
  readonly history: readonly Branch[]

  readonly #windows: Windows
  readonly #environment: Environment
  readonly #clock: Clock
  readonly #forgetAfterMs: number
  readonly #channels = new Map<string, ChannelRing>()
  readonly #idempotency: Idempotency<readonly Place[]>
  readonly #tails = new Set<(batch: TailBatch) => void>()
  /** Stands for every channel that is not in the map: each that was ever trimmed and then forgotten is below it. */
  #forgottenThrough: Position = origin
  readonly #feed = createMemoryFeed()
  readonly #slices: SliceQueue
  /** Appended, but not yet handed to the tails. */
  #unannounced: LogEvent[] = []
  #announced: Position
  #cancelSweep: Cancel
  #closed = false

  constructor(codec: IdCodec, options: MemoryLogOptions, environment: Environment) {
    this.window = windowOf(options.window, { maxEvents: 1000, maxAgeMs: 300_000, maxBytes: 16 * 1024 * 1024 })
    this.#windows = createWindows(this.window, options.windows)
    this.#forgetAfterMs = options.forgetAfterMs ?? 30 * 24 * 3_600_000
    this.#environment = environment
    this.#slices = sliceQueueOf(environment)
    this.#idempotency = createIdempotency(options.idempotency)
    this.formats = createIdFormats([{ codec }])
    this.#clock = createClock({ ...this.formats.range, now: environment.now })
    this.history = openBranch([], { epoch: createEpoch(environment.random), first: this.#clock.next() })
    this.#announced = this.#clock.last
    this.#cancelSweep = environment.after(sweepEveryMs, () => void this.#sweep())
  }

  async append(entries: readonly NewEvent[], { once }: AppendOptions): Promise<Appended> {
    this.#assertOpen()
    const at = this.#environment.now()
    const earlier = once && this.#idempotency.earlier(once, at)
    if (earlier) return { places: earlier, repeated: true }
    if (once) this.#idempotency.admit(once)
    const refusal = this.#refuse(entries)
    if (refusal) throw refusal
    const events = entries.map((entry) => this.#push(entry, at))
    for (const channel of new Set(entries.map((entry) => entry.channel))) {
      this.#channels.get(channel)?.trim(at)
    }
    const places = events.map(({ position, at }) => ({ position, at }))
    if (once) this.#idempotency.remember(once, places, at)
    this.#announce(events)
    return { places, repeated: false }
  }

  async invalidate(channel: string): Promise<LogEvent> {
    this.#assertOpen()
    const ring = this.#ring(channel)
    const entry = ring.invalidate(channel, this.#clock.next(), this.#environment.now())
    this.#feed.add({ position: entry.position, channel, ring })
    this.#announce([entry])
    return entry
  }

  async end(channel: string): Promise<LogEvent> {
    this.#assertOpen()
    const ring = this.#ring(channel)
    if (ring.ended) return ring.ended
    const entry = ring.end(channel, this.#clock.next(), this.#environment.now())
    this.#announce([entry])
    return entry
  }

  async read(names: readonly string[], after: Position, through: Position, limit: PageLimit): Promise<Page> {
    this.#assertOpen()
    const range = { after, through, limit }
    const reads: NameRead[] = []
    for (const name of names) {
      const read = isPattern(name) ? this.#readByFeed(prefixOf(name), range) : this.#readChannel(name, range)
      reads.push(read ?? (await this.#readEvery(prefixOf(name), range)))
    }
    return pageOf(names, reads, range, (name) => this.#lossByFeed(prefixOf(name), range))
  }

  async readBack(
    names: readonly string[],
    after: Position,
    through: Position,
    most: number,
  ): Promise<BackPage | undefined> {
    this.#assertOpen()
    const share = shareOfBackPage(most, names.length)
    const patterns = names.filter(isPattern)
    const channels = names.filter((name) => !isPattern(name))
    const pages: (BackPage | undefined)[] = channels.map((name) => this.#readChannelBack(name, after, through, share))
    if (patterns.length > 0) pages.push(this.#readFeedBack(patterns.map(prefixOf), after, through, share))
    return pages.every((page) => page !== undefined) ? mergeBackPages(pages) : undefined
  }

  async windows(names: readonly string[]): Promise<readonly Window[]> {
    this.#assertOpen()
    return Promise.all(names.map((name) => (isPattern(name) ? this.#windowUnder(name) : this.#window(name))))
  }

  #window(channel: string): Window {
    const ring = this.#channels.get(channel)
    if (!ring) return { channel, events: 0, bytes: 0, trimmedThrough: this.#forgottenThrough }
    ring.trim(this.#environment.now())
    return { channel, trimmedThrough: ring.trimmedThrough, ...ring.held() }
  }

  async #windowUnder(pattern: string): Promise<Window> {
    let sum: Window = { channel: pattern, events: 0, bytes: 0, trimmedThrough: this.#forgottenThrough }
    await this.#walkUnder(prefixOf(pattern), ([channel]) => {
      sum = sumWindows(sum, [this.#window(channel)])
    })
    return sum
  }

  /** Of the channels that start with a prefix, each, in slices: a million in one turn would hold up everybody. */
  #walkUnder(prefix: string, each: (channel: [name: string, ring: ChannelRing]) => unknown): Promise<void> {
    return walkInSlices(this.#slices, this.#channels, (channel) =>
      channel[0].startsWith(prefix) && each(channel) === false ? false : undefined,
    )
  }

  async retained(names: readonly string[]): Promise<readonly LogEvent[] | undefined> {
    this.#assertOpen()
    const found: LogEvent[] = []
    const add = (ring: ChannelRing | undefined) => {
      for (const event of ring?.retained() ?? []) found.push(event)
      return found.length <= retainLimits.keys
    }
    for (const name of names) {
      if (isPattern(name)) await this.#walkUnder(prefixOf(name), ([, ring]) => add(ring))
      else add(this.#channels.get(name))
    }
    return inOnePiece(found)
  }

  windowOf(name: string): Required<WindowOptions> {
    return this.#windows.of(name)
  }

  async channels({ prefix, after, limit }: ChannelPage): Promise<readonly Window[]> {
    this.#assertOpen()
    let names: string[] = []
    await this.#walkUnder(prefix, ([name]) => {
      if (name <= after) return
      names.push(name)
      // Cut in bulk: sorted one by one, a million names would take minutes.
      if (names.length > 2 * limit + 1000) names = names.sort().slice(0, limit)
    })
    return names
      .sort()
      .slice(0, limit)
      .map((name) => this.#window(name))
  }

  async probe(): Promise<void> {
    this.#assertOpen()
  }

  async tail(after: Position, onBatch: (batch: TailBatch) => void): Promise<Tail> {
    this.#assertOpen()
    if (isAfter(this.#announced, after)) onBatch(this.#everythingAfter(after))
    this.#tails.add(onBatch)
    return { close: () => void this.#tails.delete(onBatch) }
  }

  async head(): Promise<Position> {
    this.#assertOpen()
    return this.#clock.last
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#cancelSweep()
    this.#tails.clear()
    this.#channels.clear()
    this.#unannounced = []
  }

  #announce(events: readonly LogEvent[]): void {
    if (events.length === 0) return
    if (this.#unannounced.length === 0) queueMicrotask(() => this.#announceAll())
    for (const event of events) this.#unannounced.push(event)
  }

  #announceAll(): void {
    const batch = { after: this.#announced, events: this.#unannounced }
    this.#unannounced = []
    this.#announced = batch.events.at(-1)?.position ?? batch.after
    for (const onBatch of this.#tails) onBatch(batch)
  }

  #refuse(entries: readonly NewEvent[]): RejoinError | undefined {
    const ended = entries.find((entry) => this.#channels.get(entry.channel)?.ended)
    if (ended) return channelEnded(ended.channel)
    return refuseRetaining(
      entries,
      (channel) => this.#channels.get(channel)?.retainedSize ?? { keys: 0, bytes: 0 },
      (channel, key) => this.#channels.get(channel)?.retainedAt(key),
    )
  }

  #push(entry: NewEvent, at: number): LogEvent {
    const position = this.#clock.next()
    if (!entry.live) {
      const ring = this.#ring(entry.channel)
      this.#feed.add({ position, channel: entry.channel, ring })
      return ring.push(entry, position, at)
    }
    return { kind: 'live', ...entry, position, at, previous: this.#channels.get(entry.channel)?.newest ?? origin }
  }

  #readChannel(name: string, { after, through, limit }: PageRange): NameRead {
    const ring = this.#channels.get(name)
    if (!ring) return lossAfter(this.#forgotten, after) ?? { events: [], through }
    ring.trim(this.#environment.now())
    return lossAfter(ring, after) ?? takePart(ring.between(after, through), through, limit)
  }

  /** What follows a place in the channels that start with a prefix; undefined when the feed does not reach back to it. */
  #readByFeed(prefix: string, { after, through, limit }: PageRange): NameRead | undefined {
    if (isAfter(this.#feed.droppedThrough, after)) return undefined
    const now = this.#environment.now()
    const events: LogEvent[] = []
    const checked = new Set<ChannelRing>()
    if (isAfter(this.#forgottenThrough, after)) return this.#lossByFeed(prefix, { after, through })
    let bytes = 0
    let looked = 0
    for (const { position, channel, ring } of this.#feed.after(after)) {
      if (isAfter(position, through)) break
      if (channel.startsWith(prefix)) {
        if (!checked.has(ring)) {
          checked.add(ring)
          ring.trim(now)
          const lost = lossAfter(ring, after)
          if (lost) return addLoss(lost, this.#lossByFeed(prefix, { after, through }))
        }
        const event = ring.at(position)
        if (event) {
          events.push(event)
          bytes += byteCost(event)
          if (events.length >= limit.events || bytes >= limit.bytes) return { events, through: position }
        }
      }
      looked += 1
      if (looked === lookedAtATime) return { events, through: position }
    }
    return { events, through }
  }

  /** What the channels below a prefix have lost after a place, as far as the feed leads to them within a page's time. */
  #lossByFeed(prefix: string, { after, through }: Pick<PageRange, 'after' | 'through'>): Lost | undefined {
    const now = this.#environment.now()
    // A channel that was forgotten may have been any of them.
    let lost = lossAfter(this.#forgotten, after)
    let looked = 0
    for (const { position, channel, ring } of this.#feed.after(after)) {
      if (isAfter(position, through) || looked === lookedAtATime) return lost
      looked += 1
      if (!channel.startsWith(prefix)) continue
      ring.trim(now)
      lost = addLoss(lost, lossAfter(ring, after))
    }
    return lost
  }

  /** The same without the feed: by a look at every channel. One without news has lost nothing either. */
  async #readEvery(prefix: string, range: PageRange): Promise<NameRead> {
    const { after, limit } = range
    const page = createWidePage(range)
    let some: ChannelRing[] = []
    const read = () => {
      const now = this.#environment.now()
      const share = { ...limit, events: page.share(some.length) }
      page.add(
        some.map((ring) => {
          ring.trim(now)
          return lossAfter(ring, after) ?? takePart(ring.between(after, page.through), page.through, share)
        }),
      )
      some = []
    }
    await this.#walkUnder(prefix, ([, ring]) => {
      if (isAfter(ring.newest, after) || isAfter(ring.trimmedThrough, after)) some.push(ring)
      if (some.length === readAtATime) read()
    })
    this.#assertOpen()
    read()
    // After the look: a channel that was forgotten meanwhile is not in it.
    const lost = lossAfter(this.#forgotten, after)
    if (lost) page.add([lost])
    return page.result()
  }

  #readChannelBack(name: string, after: Position, through: Position, most: number): BackPage {
    const ring = this.#channels.get(name)
    ring?.trim(this.#environment.now())
    const wholeAfter = latest(after, ring?.trimmedThrough ?? this.#forgottenThrough)
    const places: TypedPlace[] = []
    if (!ring) return { places, completeAfter: wholeAfter, wholeAfter }
    const { items, from, to } = ring.between(wholeAfter, through)
    for (let index = to - 1; index >= from; index -= 1) {
      const place = items[index] as LogEvent
      if (places.length === most) return { places, completeAfter: place.position, wholeAfter }
      places.push(place)
    }
    return { places, completeAfter: wholeAfter, wholeAfter }
  }

  #readFeedBack(prefixes: readonly string[], after: Position, through: Position, most: number): BackPage | undefined {
    const { droppedThrough } = this.#feed
    if (!isAfter(through, droppedThrough)) return undefined
    const now = this.#environment.now()
    const places: TypedPlace[] = []
    let wholeAfter = latest(after, this.#forgottenThrough)
    // Each is compared with every prefix.
    let left = Math.ceil(lookedAtATime / prefixes.length)
    for (const { position, channel, ring } of this.#feed.upTo(through)) {
      if (!isAfter(position, wholeAfter)) return { places, completeAfter: wholeAfter, wholeAfter }
      if (places.length === most || left === 0) return { places, completeAfter: position, wholeAfter }
      left -= 1
      if (!prefixes.some((prefix) => channel.startsWith(prefix))) continue
      ring.trim(now)
      // What it lost is behind its newest entry, and that is the first of its entries that is met here.
      wholeAfter = latest(wholeAfter, ring.trimmedThrough)
      const event = ring.at(position)
      if (event) places.push(event)
    }
    return { places, completeAfter: latest(droppedThrough, wholeAfter), wholeAfter }
  }

  #ring(channel: string): ChannelRing {
    let ring = this.#channels.get(channel)
    if (!ring) {
      // A channel that comes back after it was forgotten must not look as if it had never lost anything.
      ring = new ChannelRing(this.#forgottenThrough, this.#windows.of(channel))
      this.#channels.set(channel, ring)
    }
    return ring
  }

  /** What stands for every channel that is not in the map. */
  get #forgotten() {
    return { trimmedThrough: this.#forgottenThrough, invalidatedThrough: origin }
  }

  /** A tail opened in the past: whatever is still held, behind the newest place where something is missing. */
  #everythingAfter(after: Position): TailBatch {
    const rings = [...this.#channels.values()]
    const from = rings.reduce(
      (place, ring) => latest(place, ring.trimmedThrough),
      latest(after, this.#forgottenThrough),
    )
    const held = rings.map((ring) => ring.between(from, this.#announced))
    const ends = rings.flatMap(({ ended }) => (ended && isAfter(ended.position, from) ? [ended] : []))
    ends.sort((a, b) => comparePositions(a.position, b.position))
    return { after: from, events: [...mergeInOrder([...held, { items: ends, from: 0, to: ends.length }])] }
  }

  async #sweep(): Promise<void> {
    const sweep = ([channel, ring]: [string, ChannelRing]) => {
      const now = this.#environment.now()
      ring.trim(now)
      if (ring.idleSince !== undefined && now - ring.idleSince > this.#forgetAfterMs) {
        // Its end, too: once that is forgotten, nobody tells of it.
        const lost = latest(ring.trimmedThrough, ring.ended?.position ?? origin)
        this.#forgottenThrough = latest(this.#forgottenThrough, lost)
        this.#channels.delete(channel)
      }
    }
    await walkInSlices(this.#slices, this.#channels, sweep, sweptAtATime)
    if (!this.#closed) this.#cancelSweep = this.#environment.after(sweepEveryMs, () => void this.#sweep())
  }

  #assertOpen(): void {
    if (this.#closed)
      throw new RejoinError('The log is closed. Publish and subscribe before closing the hub.', { code: 'closed' })
  }
}

function takePart({ items, from, to }: Stretch<LogEvent>, through: Position, limit: PageLimit): PartRead {
  let bytes = 0
  for (let index = from; index < to; index += 1) {
    const event = items[index] as LogEvent
    bytes += byteCost(event)
    const isFull = index - from + 1 >= limit.events || bytes >= limit.bytes
    if (isFull) return { events: items.slice(from, index + 1), through: event.position }
  }
  return { events: items.slice(from, to), through }
}
