import {
  type Branch,
  comparePositions,
  createEpoch,
  createIdFormats,
  createPositionClock,
  type IdCodec,
  type IdFormats,
  isAfter,
  isPattern,
  latest,
  openBranch,
  origin,
  type Position,
  type PositionClock,
  prefixOf,
  RejoinError,
  ulid,
} from '@rejoin/protocol'
import type { Cancel, Environment } from '../../environment.ts'
import { invalidOption } from '../../invalid-option.ts'
import { type SliceQueue, sliceQueueOf, walkInSlices } from '../../slice-queue.ts'
import type { Complete } from '../../with-defaults.ts'
import { mergeBackPages, shareOfBackPage } from '../back-pages.ts'
import { ChannelRing } from '../channel-ring.ts'
import {
  type Appended,
  type AppendOptions,
  type BackPage,
  type ChannelPage,
  type IdSwitch,
  type IdSwitchOptions,
  type Log,
  type LogBudget,
  type LogEvent,
  type LogSource,
  type NewEvent,
  type NewIdFormat,
  type Page,
  type PageLimit,
  type PutIfAbsent,
  retainLimits,
  type Stamp,
  type Tail,
  type TailBatch,
  type Window,
  type WindowOptions,
} from '../contract.ts'
import { channelEnded } from '../ended.ts'
import { createFarReads, type FarReads } from '../far-reads.ts'
import { planIdSwitch, positionBehind } from '../id-switch.ts'
import { createIdempotency, type Idempotency, type IdempotencyOptions } from '../idempotency.ts'
import { mergeInOrder } from '../in-order.ts'
import { inOnePiece, rejectRetaining } from '../retained.ts'
import { pageOf, type SelectorRead } from '../selector-read.ts'
import { createValues } from '../values.ts'
import {
  budgetOf,
  type ChannelWindows,
  createWindows,
  lossOf,
  sumWindows,
  type Windows,
  windowOf,
  windowOfForgotten,
} from '../window.ts'
import { createMemoryBudget, type MemoryBudget } from './budget.ts'
import { createMemoryFeed } from './feed.ts'
import { createMemoryReads, type MemoryReads } from './reads.ts'

export interface MemoryLogOptions {
  /** What each channel keeps. */
  window?: WindowOptions | undefined
  /** Other windows for some channels or patterns: `{ 'prices/*': { maxEvents: 10 } }`. The narrowest name counts. */
  windows?: ChannelWindows | undefined
  /**
   * How ids are written. `snowflake` is rejected: its branch tag is a counter that a log without a memory cannot keep.
   * @defaultValue ulid()
   */
  codec?: IdCodec | undefined
  /**
   * How long the log remembers an empty channel, in milliseconds. To forget a channel frees about 400 bytes. From then on,
   * readers of unknown channels with an older cursor are told of a gap. A channel that has ended takes events again once it is
   * forgotten; readers from before its end are told of a gap.
   * @defaultValue 2592000000 (30 days)
   */
  forgetAfterMs?: number | undefined
  /** How long, and for how many publishes, the log recognises a repeated `Idempotency-Key`. */
  idempotency?: IdempotencyOptions | undefined
  /**
   * Bytes that all channels may hold together, counted as in their windows. Beyond that the oldest events of all channels go
   * first, and a reader that needs them is told of a gap. Publishing goes on. The process needs about 300 bytes more per event.
   * @defaultValue no bound but the windows
   */
  maxBytes?: number | undefined
}

/**
 * A log in the memory of this process. Each start is a new branch that continues nothing, so a reader with an id of an earlier
 * process is told of a gap.
 */
export function memoryLog(options: MemoryLogOptions = {}): LogSource {
  const codec = options.codec ?? ulid()
  budgetOf(options.maxBytes)
  if (codec.lasting) {
    throw invalidOption(`The ${codec.name} codec needs a log that survives restarts. Use ulid() with memoryLog().`)
  }
  return { name: 'memory', open: async (environment) => new MemoryLog(codec, options, environment) }
}

// How often the log lets go of old events in idle channels. In memory, an event outlives its age bound by at most this much.
// Reads apply the age themselves, and never serve an event that is too old.
const sweepEveryMs = 10_000
// Channels per slice. Each of them may let go of its whole window.
const sweptAtATime = 64

class MemoryLog implements Log {
  readonly name = 'memory'
  readonly durability = 'memory'
  readonly window: Complete<WindowOptions>
  formats: IdFormats
  readonly history: readonly Branch[]

  readonly #windows: Windows
  readonly #environment: Environment
  #clock: PositionClock
  readonly #forgetAfterMs: number
  readonly #channels = new Map<string, ChannelRing>()
  /** The channels that retain an event. A reader of a pattern asks for all of them, and most channels retain nothing. */
  readonly #retaining = new Map<string, ChannelRing>()
  readonly #idempotency: Idempotency<readonly Stamp[]>
  readonly #values: PutIfAbsent
  readonly #tails = new Set<(batch: TailBatch) => void>()
  /** The `trimmedThrough` of every channel that is not in the map: no forgotten channel has lost anything after it. */
  #forgottenThrough: Position = origin
  readonly #feed = createMemoryFeed()
  readonly #slices: SliceQueue
  readonly #far: FarReads
  readonly #reads: MemoryReads
  readonly #budget: MemoryBudget | undefined
  readonly #held = { heldBytes: 0 }
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
    if (options.maxBytes !== undefined) {
      this.#budget = createMemoryBudget({
        maxBytes: options.maxBytes,
        held: this.#held,
        now: environment.now,
        slices: this.#slices,
        isClosed: () => this.#closed,
      })
    }
    this.#reads = createMemoryReads({
      channels: this.#channels,
      feed: this.#feed,
      forgottenThrough: () => this.#forgottenThrough,
      now: environment.now,
      slices: this.#slices,
      assertOpen: () => this.#assertOpen(),
    })
    this.#far = createFarReads((pattern, range) => this.#reads.every(prefixOf(pattern), range), environment)
    this.#idempotency = createIdempotency(options.idempotency)
    this.#values = createValues(environment.now)
    this.formats = createIdFormats([{ codec }])
    this.#clock = createPositionClock({ ...this.formats.range, now: environment.now })
    this.history = openBranch([], { epoch: createEpoch(environment.random), first: this.#clock.next() })
    this.#announced = this.#clock.last
    this.#cancelSweep = environment.after(sweepEveryMs, () => void this.#sweep())
  }

  async append(entries: readonly NewEvent[], { once }: AppendOptions): Promise<Appended> {
    this.#assertOpen()
    const at = this.#environment.now()
    const earlier = once && this.#idempotency.earlier(once, at)
    if (earlier) return { stamps: earlier, repeated: true }
    if (once) this.#idempotency.admit(once)
    const rejection = this.#rejectionOf(entries)
    if (rejection) throw rejection
    const events = entries.map((entry) => this.#push(entry, at))
    for (const channel of new Set(entries.map((entry) => entry.channel))) {
      this.#channels.get(channel)?.trim(at)
    }
    this.#budget?.keep(entries, this.#channels)
    const stamps = events.map(({ position, at }) => ({ position, at }))
    if (once) this.#idempotency.remember(once, stamps, at)
    this.#announce(events)
    return { stamps, repeated: false }
  }

  async putIfAbsent(name: string, text: string, forMs?: number): Promise<string> {
    this.#assertOpen()
    return this.#values(name, text, forMs)
  }

  async invalidate(channel: string): Promise<LogEvent> {
    this.#assertOpen()
    const ring = this.#ring(channel)
    const entry = ring.invalidate(channel, this.#clock.next(), this.#environment.now())
    this.#retaining.delete(channel)
    this.#feed.add({ position: entry.position, channel, ring })
    this.#far.clear()
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

  async read(selectors: readonly string[], after: Position, through: Position, limit: PageLimit): Promise<Page> {
    this.#assertOpen()
    const range = { after, through, limit }
    const reads: SelectorRead[] = []
    for (const selector of selectors) {
      const read = isPattern(selector)
        ? this.#reads.byFeed(prefixOf(selector), range)
        : this.#reads.channel(selector, range)
      reads.push(read ?? (await this.#far.read(selector, range)))
    }
    return pageOf(selectors, reads, range, (pattern) => this.#reads.lossByFeed(prefixOf(pattern), range))
  }

  async readBack(
    selectors: readonly string[],
    after: Position,
    through: Position,
    most: number,
  ): Promise<BackPage | undefined> {
    this.#assertOpen()
    const share = shareOfBackPage(most, selectors.length)
    const patterns = selectors.filter(isPattern)
    const channels = selectors.filter((selector) => !isPattern(selector))
    const pages: (BackPage | undefined)[] = channels.map((name) => this.#reads.channelBack(name, after, through, share))
    if (patterns.length > 0) pages.push(this.#reads.feedBack(patterns.map(prefixOf), after, through, share))
    return pages.every((page) => page !== undefined) ? mergeBackPages(pages) : undefined
  }

  async windows(selectors: readonly string[]): Promise<readonly Window[]> {
    this.#assertOpen()
    return Promise.all(
      selectors.map((selector) => (isPattern(selector) ? this.#windowUnder(selector) : this.#window(selector))),
    )
  }

  #window(channel: string): Window {
    const ring = this.#channels.get(channel)
    if (!ring) return { channel, events: 0, bytes: 0, trimmedThrough: this.#forgottenThrough }
    ring.trim(this.#environment.now())
    const { trimmedThrough } = ring
    return { channel, trimmedThrough, ...ring.held(), ...lossOf(ring, this.#forgottenThrough) }
  }

  async #windowUnder(pattern: string): Promise<Window> {
    let sum = windowOfForgotten(pattern, this.#forgottenThrough)
    await this.#walkUnder(prefixOf(pattern), ([channel]) => {
      sum = sumWindows(sum, [this.#window(channel)])
    })
    return sum
  }

  /** Walks the channels with a prefix in slices: a million channels in one turn would hold up everybody. */
  #walkUnder(
    prefix: string,
    each: (channel: [name: string, ring: ChannelRing]) => unknown,
    channels: ReadonlyMap<string, ChannelRing> = this.#channels,
  ): Promise<void> {
    return walkInSlices(this.#slices, channels, (channel) =>
      channel[0].startsWith(prefix) && each(channel) === false ? false : undefined,
    )
  }

  async retained(selectors: readonly string[]): Promise<readonly LogEvent[] | undefined> {
    this.#assertOpen()
    const found: LogEvent[] = []
    const add = (ring: ChannelRing | undefined) => {
      for (const event of ring?.retained() ?? []) found.push(event)
      return found.length <= retainLimits.keys
    }
    for (const selector of selectors) {
      if (isPattern(selector)) await this.#walkUnder(prefixOf(selector), ([, ring]) => add(ring), this.#retaining)
      else add(this.#channels.get(selector))
    }
    return inOnePiece(found)
  }

  windowOf(name: string): Complete<WindowOptions> {
    return this.#windows.of(name)
  }

  async channels({ prefix, after, limit }: ChannelPage): Promise<readonly Window[]> {
    this.#assertOpen()
    let names: string[] = []
    await this.#walkUnder(prefix, ([name]) => {
      if (name <= after) return
      names.push(name)
      // Cuts in bulk: to sort after each name would take minutes for a million names.
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

  async budget(): Promise<LogBudget | undefined> {
    this.#assertOpen()
    return this.#budget?.state()
  }

  async switchIds(format: NewIdFormat, { dryRun = false }: IdSwitchOptions = {}): Promise<IdSwitch> {
    this.#assertOpen()
    const planned = planIdSwitch(this.formats, format, { lasting: false })
    if (!planned.isNew || dryRun) return planned.told(this.formats)
    const { last } = this.#clock
    this.formats = planned.since(positionBehind(last))
    this.#clock = createPositionClock({ ...this.formats.range, now: this.#environment.now, last })
    return planned.told(this.formats)
  }

  async head(): Promise<Position> {
    this.#assertOpen()
    return this.#clock.last
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#cancelSweep()
    this.#far.clear()
    this.#tails.clear()
    this.#channels.clear()
    this.#retaining.clear()
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

  #rejectionOf(entries: readonly NewEvent[]): RejoinError | undefined {
    const ended = entries.find((entry) => this.#channels.get(entry.channel)?.ended)
    if (ended) return channelEnded(ended.channel)
    return rejectRetaining(
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
      const event = ring.push(entry, position, at)
      if (entry.key !== undefined) this.#noteRetained(entry.channel, ring)
      return event
    }
    return { kind: 'live', ...entry, position, at, previous: this.#channels.get(entry.channel)?.newest ?? origin }
  }

  #noteRetained(channel: string, ring: ChannelRing): void {
    if (ring.retainedSize.keys > 0) this.#retaining.set(channel, ring)
    else this.#retaining.delete(channel)
  }

  #ring(channel: string): ChannelRing {
    let ring = this.#channels.get(channel)
    if (!ring) {
      // A channel that comes back after it was forgotten must not look as if it had never lost anything.
      ring = new ChannelRing(this.#forgottenThrough, this.#windows.of(channel), this.#held)
      this.#channels.set(channel, ring)
    }
    return ring
  }

  /** The first batch of a tail that is opened in the past. It begins after the newest position where an event is missing. */
  #everythingAfter(after: Position): TailBatch {
    const rings = [...this.#channels.values()]
    const from = rings.reduce(
      (position, ring) => latest(position, ring.trimmedThrough),
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
        // The end counts, too: a reader from before it has to be told, and the log forgets the end with the channel.
        const lost = latest(ring.trimmedThrough, ring.ended?.position ?? origin)
        this.#forgottenThrough = latest(this.#forgottenThrough, lost)
        this.#channels.delete(channel)
        this.#budget?.forget(ring)
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
