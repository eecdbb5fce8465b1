import {
  type Branch,
  type Clock,
  createClock,
  createIdFormats,
  type IdCodec,
  type IdFormats,
  isAfter,
  latest,
  origin,
  type Position,
  RejoinError,
  ulid,
} from '@rejoin/protocol'
import type { Cancel, Environment } from '../../environment.ts'
import type {
  Appended,
  AppendOptions,
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
} from '../contract.ts'
import type { IdempotencyOptions, Once } from '../idempotency.ts'
import { windowOf } from '../window.ts'
import { type Change, type Commits, createCommits } from './commits.ts'
import { createDraft, type Draft } from './draft.ts'
import { afterChannels, channelKey, channelOf, stateKey } from './keys.ts'
import { createStoredOnce, type StoredOnce } from './once.ts'
import { type OpenedLog, openLog } from './opening.ts'
import { mergePages } from './page.ts'
import { type ChannelEvents, type ChannelRead, readChannel } from './read.ts'
import { type ChannelState, type LogState, openChannelState, sealLogState } from './state.ts'
import { startSweep } from './sweep.ts'
import { trimChannel } from './trim.ts'

export interface LmdbLogOptions {
  /**
   * What each channel keeps.
   * @defaultValue 10,000 events, 24 hours, 64 MiB
   */
  window?: WindowOptions
  /**
   * How ids are written. Fixed when the log is made: it is refused to open with another.
   * @defaultValue ulid()
   */
  codec?: IdCodec
  /**
   * When a publish is answered. `disk`: after its events have been flushed; a crash or a power cut takes nothing. `os`:
   * when the operating system has them, which is faster on slow disks; a crash of the process takes nothing, but after
   * any stop that was not in order, readers are told that the newest events may be gone. A power cut may then also damage
   * the file.
   * @defaultValue 'disk'
   */
  durability?: 'disk' | 'os'
  /**
   * How long an empty channel is remembered, in milliseconds. Forgetting one costs an announced gap to readers of unknown
   * channels whose cursor is older than that, and frees some 50 bytes of disk and its name.
   * @defaultValue 2592000000 (30 days)
   */
  forgetAfterMs?: number
  /** For how long and how many publishes a repeated `Idempotency-Key` is recognised. They are kept over a restart. */
  idempotency?: IdempotencyOptions
}

/**
 * A log in a folder, written by this process alone. Events, ids and order survive restarts and crashes. Needs the package
 * `lmdb`.
 *
 * @param directory - made if it is not there. On a local disk: the file is mapped into memory, which network file systems
 *   do not keep up to date.
 */
export function lmdbLog(directory: string, options: LmdbLogOptions = {}): LogSource {
  const { durability = 'disk', codec = ulid() } = options
  if (durability !== 'disk' && durability !== 'os') {
    throw new RejoinError(`durability is ${JSON.stringify(durability)}. Choose 'disk' or 'os'.`, {
      code: 'invalid-option',
    })
  }
  const window = windowOf(options.window, defaultWindow)
  return {
    name: 'lmdb',
    async open(environment) {
      const opened = await openLog({ directory, codec, durability, environment })
      return new LmdbLog(opened, { ...options, durability, codec, window }, environment)
    },
  }
}

const defaultWindow = { maxEvents: 10_000, maxAgeMs: 24 * 3_600_000, maxBytes: 64 * 1024 * 1024 }

// Let go of per channel and commit, over what comes in: a window that was made smaller shrinks over several commits,
// none of which takes more than some milliseconds.
const trimAtMost = 16_384

class LmdbLog implements Log {
  readonly name = 'lmdb'
  readonly durability: 'disk' | 'os'
  readonly window: Required<WindowOptions>
  readonly formats: IdFormats
  readonly history: readonly Branch[]

  readonly #opened: OpenedLog
  readonly #environment: Environment
  readonly #clock: Clock
  readonly #commits: Commits
  readonly #once: StoredOnce
  readonly #stopSweep: Cancel
  readonly #tails = new Set<(batch: TailBatch) => void>()
  /** As it was last committed. */
  #state: LogState
  /** The newest place the tails have been told of. What is stored beyond it is not served: a reader could get it twice. */
  #announced: Position
  /** Channels found over their window by a read, and on their way to be trimmed. */
  readonly #untidy = new Set<string>()
  #closing: Promise<void> | undefined

  constructor(opened: OpenedLog, options: Settings, environment: Environment) {
    const { codec, durability, window, forgetAfterMs = 30 * 24 * 3_600_000, idempotency } = options
    this.durability = durability
    this.window = window
    this.formats = createIdFormats([{ codec }])
    this.history = opened.history
    this.#opened = opened
    this.#environment = environment
    this.#state = opened.state
    this.#announced = opened.state.last
    this.#clock = createClock({ ...this.formats.range, now: environment.now, last: opened.state.last })
    this.#once = createStoredOnce(opened.store, idempotency)
    this.#commits = createCommits({
      commit: (changes) => this.#commit(changes),
      onCommit: (draft) => this.#announce(draft),
    })
    const { store } = opened
    this.#stopSweep = startSweep({ store, commits: this.#commits, environment, window, forgetAfterMs })
  }

  async append(entries: readonly NewEvent[], { once }: AppendOptions): Promise<Appended> {
    this.#assertOpen()
    if (entries.length === 0) return { places: [], repeated: false }
    for (const { channel } of entries) checkKey(channel)
    return once ? this.#opened.store.reading(() => this.#appendOnce(entries, once)) : this.#append(entries)
  }

  async #append(entries: readonly NewEvent[], once?: Once): Promise<Appended> {
    const at = this.#now()
    const places = entries.map(() => ({ position: this.#clock.next(), at }))
    const stored = this.#commits.submit(appendOf(entries, places, once))
    if (once) this.#once.begin(once, places, stored)
    await stored
    return { places, repeated: false }
  }

  /** In the turn in which it finds no earlier one, it begins: of two with one key, the second finds the first. */
  #appendOnce(entries: readonly NewEvent[], once: Once): Promise<Appended> {
    const earlier = this.#once.earlier(once, this.#now())
    return earlier ? earlier.then((places) => ({ places, repeated: true })) : this.#append(entries, once)
  }

  async invalidate(channel: string): Promise<LogEvent> {
    this.#assertOpen()
    checkKey(channel)
    const place = { position: this.#clock.next(), at: this.#now() }
    let entry: LogEvent | undefined
    await this.#commits.submit({
      size: 1000,
      apply(draft) {
        entry = draft.invalidate(channel, place)
      },
    })
    return entry as LogEvent
  }

  async read(channels: readonly string[], after: Position, through: Position, limit: PageLimit): Promise<Page> {
    this.#assertOpen()
    return this.#opened.store.reading(() => this.#page(channels, after, through, limit))
  }

  #page(channels: readonly string[], after: Position, through: Position, limit: PageLimit): Page {
    const now = this.#now()
    const states = channels.map((channel) => this.#stateOf(channel, now))
    const end = isAfter(through, this.#announced) ? this.#announced : through
    const reads = states.map((state, index): ChannelRead => {
      if (isAfter(state.trimmedThrough, after)) return { wholeAfter: state.trimmedThrough }
      return readChannel(this.#opened.store, channels[index] as string, state, { after, through: end, limit })
    })
    const gap = gapOf(channels, states, reads, after)
    if (gap) return { events: [], completeThrough: after, gap }
    return mergePages(reads as ChannelEvents[], end, limit)
  }

  async windows(channels: readonly string[]): Promise<readonly Window[]> {
    this.#assertOpen()
    return this.#opened.store.reading(() => channels.map((channel) => this.#windowOf(channel)))
  }

  #windowOf(channel: string): Window {
    const state = this.#stateOf(channel, this.#now())
    const { events, bytes, trimmedThrough, newest } = state
    if (events === 0) return { channel, events, bytes, trimmedThrough }
    const first = { after: trimmedThrough, through: newest, limit: { events: 1, bytes: 1 } }
    const read = readChannel(this.#opened.store, channel, state, first)
    const oldest = 'events' in read ? read.events[0]?.position : read.wholeAfter
    return { channel, events, bytes, trimmedThrough, newest, ...(oldest ? { oldest } : {}) }
  }

  async tail(after: Position, onBatch: (batch: TailBatch) => void): Promise<Tail> {
    this.#assertOpen()
    // Added in the turn in which it reads: what is announced in between would reach it neither way.
    await this.#opened.store.reading(() => {
      if (isAfter(this.#announced, after)) onBatch(this.#everythingAfter(after))
      this.#tails.add(onBatch)
    })
    return { close: () => void this.#tails.delete(onBatch) }
  }

  async head(): Promise<Position> {
    this.#assertOpen()
    return this.#announced
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#stopSweep()
    // What was published before the close is stored and answered like everything else.
    await this.#commits.settled()
    this.#tails.clear()
    await this.#opened.close()
  }

  async #commit(changes: readonly Change[]): Promise<Draft> {
    const { store } = this.#opened
    const trimming = { window: this.window, now: this.#now(), atMost: trimAtMost }
    const { draft, made } = await store.reading(() => {
      const draft = createDraft(store, this.#state, trimming)
      for (const change of changes) change.apply(draft)
      const events = draft.changes()
      const published = changes.flatMap(({ publish }) => publish ?? [])
      const keys = this.#once.changes(published, draft.state, trimming.now)
      const state = { key: stateKey, value: sealLogState(stateKey, draft.state) }
      const made = { puts: [...events.puts, ...keys.puts, state], removals: [...events.removals, ...keys.removals] }
      return { draft, made }
    })
    await store.write(made)
    return draft
  }

  #announce({ state, events }: Draft): void {
    this.#state = state
    if (events.length === 0) return
    const batch = { after: this.#announced, events }
    this.#announced = state.last
    for (const onBatch of this.#tails) onBatch(batch)
  }

  /** What is stored of a channel, without what has fallen out of its window by now. */
  #stateOf(channel: string, now: number): ChannelState {
    const { store } = this.#opened
    const key = channelKey(channel)
    const sealed = store.get(key)
    if (!sealed) return { ...unknownChannel, trimmedThrough: this.#state.forgottenThrough }
    const state = openChannelState(key, sealed)
    if (!state) {
      this.#tidy(channel)
      return { ...unknownChannel, trimmedThrough: this.#announced }
    }
    const { trimmedThrough } = state
    trimChannel(store, state, [], { window: this.window, now, atMost: Number.POSITIVE_INFINITY })
    if (state.trimmedThrough !== trimmedThrough) this.#tidy(channel)
    return state
  }

  /** Stores what a read has found out, so that the next one need not. */
  #tidy(channel: string): void {
    if (this.#untidy.has(channel)) return
    this.#untidy.add(channel)
    const done = () => void this.#untidy.delete(channel)
    // Nobody waits for it, and a disk that is full now will be asked again by the next read.
    this.#commits.submit({ size: 100, apply: (draft) => draft.sweep(channel, 0) }).then(done, done)
  }

  /** A tail opened in the past: whatever is still held, behind the newest place where something is missing. */
  #everythingAfter(after: Position): TailBatch {
    const { store } = this.#opened
    const now = this.#now()
    let from = latest(after, this.#state.forgottenThrough)
    const changed: [name: string, state: ChannelState][] = []
    for (const { key } of store.range(channelKey(''), afterChannels)) {
      const state = this.#stateOf(channelOf(key), now)
      from = latest(from, state.trimmedThrough)
      if (isAfter(state.newest, after)) changed.push([channelOf(key), state])
    }
    for (;;) {
      const range = { after: from, through: this.#announced, limit: everything }
      const reads = changed.map(([name, state]) => readChannel(store, name, state, range))
      // Without a limit, only a hole cuts a read short.
      const holes = reads.flatMap((read) => {
        if ('wholeAfter' in read) return read.wholeAfter
        return read.cut ? (read.events.at(-1) as LogEvent).position : []
      })
      if (holes.length === 0) {
        return { after: from, events: mergePages(reads as ChannelEvents[], this.#announced, everything).events }
      }
      from = holes.reduce(latest, from)
    }
  }

  #now(): number {
    return Math.max(0, Math.floor(this.#environment.now()))
  }

  #assertOpen(): void {
    if (this.#closing)
      throw new RejoinError('The log is closed. Publish and subscribe before closing the hub.', { code: 'closed' })
  }
}

type Settings = LmdbLogOptions & {
  readonly codec: IdCodec
  readonly durability: 'disk' | 'os'
  readonly window: Required<WindowOptions>
}

/** Refused before anything is stored: half a commit would be worse than none. */
function checkKey(channel: string): void {
  if (channel.length <= longestName) return
  throw new RejoinError(`The channel name has ${channel.length} characters. Use at most ${longestName}.`, {
    code: 'invalid-channel',
  })
}

// LMDB takes keys of 1,978 bytes, and a character has up to three; the protocol's own limit is 256 bytes.
const longestName = 512

function appendOf(entries: readonly NewEvent[], places: readonly Place[], once: Once | undefined): Change {
  return {
    size: entries.length,
    publish: once && { once, places },
    apply(draft) {
      for (let index = 0; index < entries.length; index += 1) {
        draft.append(entries[index] as NewEvent, places[index] as Place)
      }
    },
  }
}

function gapOf(
  channels: readonly string[],
  states: readonly ChannelState[],
  reads: readonly ChannelRead[],
  after: Position,
): Gap | undefined {
  const lost = channels.filter((_, index) => 'wholeAfter' in (reads[index] as ChannelRead))
  if (lost.length === 0) return undefined
  const forced = states.some((state) => isAfter(state.invalidatedThrough, after))
  const wholeAfter = reads.reduce(
    (place, read) => ('wholeAfter' in read ? latest(place, read.wholeAfter) : place),
    states.map((state) => state.trimmedThrough).reduce(latest),
  )
  return { channels: lost, reason: forced ? 'forced' : 'expired', wholeAfter }
}

const everything: PageLimit = { events: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }

const unknownChannel: ChannelState = {
  number: 0,
  newest: origin,
  trimmedThrough: origin,
  invalidatedThrough: origin,
  events: 0,
  bytes: 0,
  oldestAt: 0,
  emptySince: 0,
}
