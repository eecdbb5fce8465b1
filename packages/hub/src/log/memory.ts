import {
  type Branch,
  type Clock,
  comparePositions,
  covers,
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
  RejoinError,
  ulid,
} from '@rejoin/protocol'
import type { Cancel, Environment } from '../environment.ts'
import { byteCost, ChannelRing } from './channel-ring.ts'
import type {
  Appended,
  AppendOptions,
  ChannelPage,
  Gap,
  Log,
  LogEvent,
  LogSource,
  NewEvent,
  Page,
  PageLimit,
  Place,
  Tail,
  TailBatch,
  Window,
  WindowOptions,
} from './contract.ts'
import { channelEnded } from './ended.ts'
import { createIdempotency, type Idempotency, type IdempotencyOptions } from './idempotency.ts'
import { mergeInOrder } from './in-order.ts'
import { inOnePiece, refuseRetaining } from './retained.ts'
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
    this.#idempotency = createIdempotency(options.idempotency)
    this.formats = createIdFormats([{ codec }])
    this.#clock = createClock({ ...this.formats.range, now: environment.now })
    this.history = openBranch([], { epoch: createEpoch(environment.random), first: this.#clock.next() })
    this.#announced = this.#clock.last
    this.#cancelSweep = environment.after(sweepEveryMs, () => this.#sweep())
  }

  async append(entries: readonly NewEvent[], { once }: AppendOptions): Promise<Appended> {
    this.#assertOpen()
    const at = this.#environment.now()
    const earlier = once && this.#idempotency.earlier(once, at)
    if (earlier) return { places: earlier, repeated: true }
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
    const entry = this.#ring(channel).invalidate(channel, this.#clock.next(), this.#environment.now())
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
    const now = this.#environment.now()
    const rings = names.map((name) => this.#changedIn(name, after))
    for (const ring of rings.flat()) ring.trim(now)
    const gap = this.#gapAfter(names, rings, after)
    if (gap) return { events: [], completeThrough: after, gap }

    const found = rings.flat().map((ring) => ring.between(after, through))
    const { events, cut } = takePage(mergeInOrder(found), limit)
    return { events, completeThrough: cut ? (events.at(-1) as LogEvent).position : through }
  }

  async windows(names: readonly string[]): Promise<readonly Window[]> {
    this.#assertOpen()
    const now = this.#environment.now()
    return names.map((name) => {
      const unknown = { channel: name, events: 0, bytes: 0, trimmedThrough: this.#forgottenThrough }
      const windows = this.#under(name).map(([channel, ring]) => {
        ring.trim(now)
        return { channel, trimmedThrough: ring.trimmedThrough, ...ring.held() }
      })
      return isPattern(name) ? sumWindows(unknown, windows) : (windows[0] ?? unknown)
    })
  }

  async retained(names: readonly string[]): Promise<readonly LogEvent[] | undefined> {
    this.#assertOpen()
    return inOnePiece(names.flatMap((name) => this.#under(name).flatMap(([, ring]) => [...ring.retained()])))
  }

  windowOf(name: string): Required<WindowOptions> {
    return this.#windows.of(name)
  }

  async channels({ prefix, after, limit }: ChannelPage): Promise<readonly Window[]> {
    this.#assertOpen()
    const names = [...this.#channels.keys()].filter((name) => name.startsWith(prefix) && name > after)
    return this.windows(names.sort().slice(0, limit))
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
    if (!entry.live) return this.#ring(entry.channel).push(entry, position, at)
    return { kind: 'live', ...entry, position, at, previous: this.#channels.get(entry.channel)?.newest ?? origin }
  }

  /** Those with news after a place: one without has lost nothing either. */
  #changedIn(name: string, after: Position): ChannelRing[] {
    const changed: ChannelRing[] = []
    for (const [channel, ring] of this.#ringsOf(name)) {
      // One that was forgotten and has come back to be ended has nothing new, and may have lost something.
      const isChanged = isAfter(ring.newest, after) || isAfter(ring.trimmedThrough, after)
      if (isChanged && covers(name, channel)) changed.push(ring)
    }
    return changed
  }

  #under(name: string): [channel: string, ring: ChannelRing][] {
    return [...this.#ringsOf(name)].filter(([channel]) => covers(name, channel))
  }

  /** Of a pattern all there are: a million take some 50 ms to look at, and a log in memory has not so many. */
  #ringsOf(name: string): Iterable<[channel: string, ring: ChannelRing]> {
    if (isPattern(name)) return this.#channels
    const ring = this.#channels.get(name)
    return ring ? [[name, ring]] : []
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

  #gapAfter(names: readonly string[], rings: readonly ChannelRing[][], after: Position): Gap | undefined {
    const places = names.map((name, index) => {
      const unknown = isPattern(name) || !this.#channels.has(name) ? this.#forgottenThrough : origin
      return (rings[index] ?? []).reduce((place, ring) => latest(place, ring.trimmedThrough), unknown)
    })
    const lost = names.filter((_, index) => isAfter(places[index] as Position, after))
    if (lost.length === 0) return undefined
    const forced = rings.flat().some(({ invalidatedThrough }) => isAfter(invalidatedThrough, after))
    return { channels: lost, reason: forced ? 'forced' : 'expired', wholeAfter: places.reduce(latest) }
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

  #sweep(): void {
    const now = this.#environment.now()
    for (const [channel, ring] of this.#channels) {
      ring.trim(now)
      if (ring.idleSince !== undefined && now - ring.idleSince > this.#forgetAfterMs) {
        this.#forgottenThrough = latest(this.#forgottenThrough, ring.trimmedThrough)
        this.#channels.delete(channel)
      }
    }
    this.#cancelSweep = this.#environment.after(sweepEveryMs, () => this.#sweep())
  }

  #assertOpen(): void {
    if (this.#closed)
      throw new RejoinError('The log is closed. Publish and subscribe before closing the hub.', { code: 'closed' })
  }
}

function takePage(found: Iterable<LogEvent>, limit: PageLimit): { events: LogEvent[]; cut: boolean } {
  const events: LogEvent[] = []
  let bytes = 0
  for (const event of found) {
    events.push(event)
    bytes += byteCost(event)
    if (events.length === limit.events || bytes >= limit.bytes) return { events, cut: true }
  }
  return { events, cut: false }
}
