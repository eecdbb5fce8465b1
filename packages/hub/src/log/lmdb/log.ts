import {
  type Branch,
  type Clock,
  createClock,
  createIdFormats,
  type IdCodec,
  type IdFormats,
  isAfter,
  isPattern,
  latest,
  origin,
  type Position,
  RejoinError,
  ulid,
} from '@rejoin/protocol'
import type { Cancel, Environment } from '../../environment.ts'
import { type SliceQueue, sliceQueueOf } from '../../slice-queue.ts'
import { mergeBackPages, shareOfBackPage } from '../back-pages.ts'
import type {
  Appended,
  AppendOptions,
  BackPage,
  ChannelPage,
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
import type { NameRead } from '../name-read.ts'
import { type ChannelWindows, createWindows, type Windows, windowOf } from '../window.ts'
import { type BacklogSource, readBacklog } from './backlog.ts'
import { type Change, type Commit, type Commits, createCommits } from './commits.ts'
import { createDraft, type Draft } from './draft.ts'
import { channelKey, stateKey } from './keys.ts'
import { createStoredOnce, type StoredOnce } from './once.ts'
import { type OpenedLog, openLog } from './opening.ts'
import { type PageSource, readPage } from './page.ts'
import { readChannelBack, readFeedBack } from './read-back.ts'
import { readRetained } from './retained-values.ts'
import { type ChannelState, type LogState, openChannelState, openLogState, sealLogState } from './state.ts'
import { startSweep } from './sweep.ts'
import { trimChannel } from './trim.ts'
import { readEvery, type WideSource } from './wide-read.ts'
import { readChannels, readWindow, readWindowUnder, type WindowSource } from './windows.ts'

export interface LmdbLogOptions {
  /**
   * What each channel keeps.
   * @defaultValue 10,000 events, 24 hours, 64 MiB
   */
  window?: WindowOptions
  /** Other windows for some channels or patterns: `{ 'prices/*': { maxEvents: 10 } }`. The narrowest name counts. */
  windows?: ChannelWindows
  /**
   * How ids are written. Fixed when the log is made: it is refused to open with another.
   * @defaultValue ulid()
   */
  codec?: IdCodec
  /**
   * When a publish is answered. `disk`: after its events have been flushed; a crash or a power cut takes nothing. `os`:
   * when the operating system has them, which is faster on slow disks; a crash of the process takes nothing, but a power
   * cut may take the newest events, of which readers that have them are told, and may damage the file.
   * @defaultValue 'disk'
   */
  durability?: 'disk' | 'os'
  /**
   * How long an empty channel is remembered, in milliseconds. Forgetting one costs an announced gap to readers of unknown
   * channels whose cursor is older than that, and frees some 50 bytes of disk and its name.
   * A channel that has ended takes events again once it is forgotten; readers from before its end are told of a gap.
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
  const windows = createWindows(window, options.windows)
  return {
    name: 'lmdb',
    async open(environment) {
      const opened = await openLog({ directory, codec, durability, environment })
      return new LmdbLog(opened, { ...options, durability, codec, window, windows }, environment)
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

  readonly #windows: Windows
  readonly #opened: OpenedLog
  readonly #environment: Environment
  readonly #slices: SliceQueue
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
  #tidyingKeys = false
  #closing: Promise<void> | undefined

  constructor(opened: OpenedLog, options: Settings, environment: Environment) {
    const { codec, durability, window, windows, forgetAfterMs = 30 * 24 * 3_600_000, idempotency } = options
    this.durability = durability
    this.window = window
    this.#windows = windows
    this.formats = createIdFormats([{ codec }])
    this.history = opened.history
    this.#opened = opened
    this.#environment = environment
    this.#slices = sliceQueueOf(environment)
    this.#state = opened.state
    this.#announced = opened.state.last
    this.#clock = createClock({ ...this.formats.range, now: environment.now, last: opened.state.last })
    this.#once = createStoredOnce(opened.store, idempotency)
    this.#commits = createCommits({
      commit: (changes) => this.#commit(changes),
      onCommit: (made) => this.#announce(made),
    })
    const { store } = opened
    this.#stopSweep = startSweep({ store, commits: this.#commits, environment, windows, forgetAfterMs })
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
    if (earlier) return earlier.then((places) => ({ places, repeated: true }))
    try {
      this.#once.admit(once, this.#state.keys)
    } catch (refusal) {
      this.#tidyKeys()
      throw refusal
    }
    return this.#append(entries, once)
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
        return undefined
      },
    })
    return entry as LogEvent
  }

  async end(channel: string): Promise<LogEvent> {
    this.#assertOpen()
    checkKey(channel)
    const place = { position: this.#clock.next(), at: this.#now() }
    let entry: LogEvent | undefined
    await this.#commits.submit({
      size: 1,
      apply(draft) {
        entry = draft.end(channel, place)
        return undefined
      },
    })
    return entry as LogEvent
  }

  async read(names: readonly string[], after: Position, through: Position, limit: PageLimit): Promise<Page> {
    this.#assertOpen()
    const range = { after, through: isAfter(through, this.#announced) ? this.#announced : through, limit }
    const far = new Map<string, NameRead>()
    for (;;) {
      const page = await this.#opened.store.reading(() => readPage(this.#pageSource(names), names, range, far))
      if (!('tooFar' in page)) return page
      far.set(page.tooFar, await readEvery(this.#wideSource(), page.tooFar, range))
    }
  }

  async readBack(
    names: readonly string[],
    after: Position,
    through: Position,
    most: number,
  ): Promise<BackPage | undefined> {
    this.#assertOpen()
    const range = { after, through, most: shareOfBackPage(most, names.length) }
    return this.#opened.store.reading(() => {
      const source = this.#pageSource(names)
      const patterns = names.filter(isPattern)
      const channels = names.filter((name) => !isPattern(name))
      const pages = channels.map((name) => readChannelBack(source, name, range))
      if (patterns.length > 0) pages.push(readFeedBack(source, patterns, range))
      return pages.every((page) => page !== undefined) ? mergeBackPages(pages) : undefined
    })
  }

  #pageSource(names: readonly string[]): PageSource {
    const now = this.#now()
    const log = names.some(isPattern) ? { ...this.#state, forgottenThrough: this.#forgottenThrough() } : this.#state
    return { store: this.#opened.store, log, stateOf: (channel) => this.#stateOf(channel, now) }
  }

  #wideSource(): WideSource {
    return {
      slices: this.#slices,
      page: () => {
        this.#assertOpen()
        return this.#pageSource(['*'])
      },
      reading: (task) => this.#opened.store.reading(task),
    }
  }

  /** As it is stored: a commit that forgets a channel shows in the store some time before it is announced here. */
  #forgottenThrough(): Position {
    const sealed = this.#opened.store.get(stateKey)
    const stored = sealed && openLogState(stateKey, sealed)
    return latest(this.#state.forgottenThrough, stored?.forgottenThrough ?? origin)
  }

  async windows(names: readonly string[]): Promise<readonly Window[]> {
    this.#assertOpen()
    return Promise.all(
      names.map((name) =>
        isPattern(name)
          ? readWindowUnder(this.#source(), name, this.#slices)
          : this.#opened.store.reading(() => readWindow(this.#source(), name)),
      ),
    )
  }

  async retained(names: readonly string[]): Promise<readonly LogEvent[] | undefined> {
    this.#assertOpen()
    return readRetained(this.#opened.store, names, this.#slices)
  }

  windowOf(name: string): Required<WindowOptions> {
    return this.#windows.of(name)
  }

  async channels({ prefix, after, limit }: ChannelPage): Promise<readonly Window[]> {
    this.#assertOpen()
    return readChannels(this.#source(), { prefix, after, limit }, this.#slices)
  }

  fault(): RejoinError | undefined {
    return this.#closing ? undefined : this.#opened.fault()
  }

  async probe(): Promise<void> {
    this.#assertOpen()
    // A commit without a change writes the log's state all the same.
    await this.#commits.submit({ size: 1, apply: () => undefined })
  }

  async tail(after: Position, onBatch: (batch: TailBatch) => void): Promise<Tail> {
    this.#assertOpen()
    // Added in the turn in which it reads: what is announced in between would reach it neither way.
    await this.#opened.store.reading(() => {
      if (isAfter(this.#announced, after)) onBatch(readBacklog(this.#source(), after, this.#announced))
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

  async #commit(changes: readonly Change[]): Promise<MadeCommit> {
    const { store } = this.#opened
    this.#assertThere()
    const trimming = { windows: this.#windows, now: this.#now(), atMost: trimAtMost }
    const { draft, made, refusals } = await store.reading(() => {
      const draft = createDraft(store, this.#state, trimming)
      const refusals = new Map<Change, RejoinError>()
      for (const change of changes) {
        const refusal = change.apply(draft)
        if (refusal) refusals.set(change, refusal)
      }
      const events = draft.changes()
      const published = changes.flatMap((change) => (refusals.has(change) ? [] : (change.publish ?? [])))
      const keys = this.#once.changes(published, draft.state, trimming.now)
      const state = { key: stateKey, value: sealLogState(stateKey, draft.state) }
      const made = { puts: [...events.puts, ...keys.puts, state], removals: [...events.removals, ...keys.removals] }
      return { draft, made, refusals }
    })
    await store.write(made)
    // Only now is it certain that what was written is still in the folder.
    this.#assertThere()
    return { draft, refusals }
  }

  #announce({ draft: { state, events } }: MadeCommit): void {
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
    if (!sealed) return { ...unknownChannel, trimmedThrough: this.#forgottenThrough() }
    const state = openChannelState(key, sealed)
    if (!state) {
      this.#tidy(channel)
      return { ...unknownChannel, trimmedThrough: this.#announced }
    }
    const { trimmedThrough } = state
    trimChannel(store, state, [], { window: this.#windows.of(channel), now, atMost: Number.POSITIVE_INFINITY })
    if (state.trimmedThrough !== trimmedThrough) this.#tidy(channel)
    return state
  }

  /** Stores what a read has found out, so that the next one need not. */
  #tidy(channel: string): void {
    if (this.#untidy.has(channel)) return
    this.#untidy.add(channel)
    const done = () => void this.#untidy.delete(channel)
    // Nobody waits for it, and a disk that is full now will be asked again by the next read.
    this.#commits.submit({ size: 100, apply: (draft) => void draft.sweep(channel, 0) }).then(done, done)
  }

  /** Old keys go with commits, and when all publishes are refused for want of room, there are none. */
  #tidyKeys(): void {
    if (this.#tidyingKeys) return
    this.#tidyingKeys = true
    const done = () => {
      this.#tidyingKeys = false
    }
    this.#commits.submit({ size: 100, apply: () => undefined }).then(done, done)
  }

  /** What is read, as it is now. */
  #source(): WindowSource & BacklogSource {
    return {
      store: this.#opened.store,
      windows: this.#windows,
      forgottenThrough: this.#state.forgottenThrough,
      now: () => this.#now(),
      stateOf: (channel) => this.#stateOf(channel, this.#now()),
      assertOpen: () => this.#assertOpen(),
    }
  }

  #now(): number {
    return Math.max(0, Math.floor(this.#environment.now()))
  }

  #assertThere(): void {
    const fault = this.#opened.fault()
    if (fault) throw fault
  }

  #assertOpen(): void {
    if (this.#closing)
      throw new RejoinError('The log is closed. Publish and subscribe before closing the hub.', { code: 'closed' })
  }
}

type Settings = Omit<LmdbLogOptions, 'windows'> & {
  readonly codec: IdCodec
  readonly durability: 'disk' | 'os'
  readonly window: Required<WindowOptions>
  readonly windows: Windows
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
    apply: (draft) => draft.append(entries, places),
  }
}

interface MadeCommit extends Commit {
  readonly draft: Draft
}

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
