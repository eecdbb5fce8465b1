import {
  type Branch,
  type Clock,
  createClock,
  type IdCodec,
  type IdFormats,
  isAfter,
  isPattern,
  latest,
  origin,
  type Position,
  RejoinError,
} from '@rejoin/protocol'
import type { Cancel, Environment } from '../../environment.ts'
import { type SliceQueue, sliceQueueOf } from '../../slice-queue.ts'
import { mergeBackPages, shareOfBackPage } from '../back-pages.ts'
import type {
  Appended,
  AppendOptions,
  BackPage,
  Backup,
  BackupOptions,
  ChannelPage,
  IdSwitch,
  IdSwitchOptions,
  Log,
  LogBudget,
  LogEvent,
  LogSource,
  NewEvent,
  NewIdFormat,
  Page,
  PageLimit,
  Stamp,
  Tail,
  TailBatch,
  Window,
  WindowOptions,
} from '../contract.ts'
import { createFarReads, type FarReads } from '../far-reads.ts'
import { planIdSwitch, positionBehind } from '../id-switch.ts'
import type { IdempotencyOptions, Once } from '../idempotency.ts'
import type { NameRead } from '../name-read.ts'
import { budgetOf, type ChannelWindows, createWindows, type Windows, windowOf } from '../window.ts'
import { type BacklogSource, readBacklog } from './backlog.ts'
import { backupStore } from './backup.ts'
import { type Change, type Commit, type Commits, createCommits, maxSize } from './commits.ts'
import { createDraft, type Draft } from './draft.ts'
import { sealFormat } from './format.ts'
import { channelKey, formatKey, stateKey } from './keys.ts'
import { createStoredOnce, type StoredOnce } from './once.ts'
import { type OpenedLog, openLog } from './opening.ts'
import { readPage } from './page.ts'
import type { PageSource } from './read.ts'
import { readChannelBack, readFeedBack } from './read-back.ts'
import { readRetained } from './retained-values.ts'
import { type ChannelState, type LogState, openChannelState, openLogState, sealLogState } from './state.ts'
import { startSweep } from './sweep.ts'
import { trimChannel } from './trim.ts'
import { readEvery, type WideSource } from './wide-read.ts'
import { readChannels, readWindow, readWindowUnder, type WindowSource } from './windows.ts'

export { backupLmdb, restoreLmdb } from './backup.ts'

export interface LmdbLogOptions {
  /**
   * What each channel keeps.
   * @defaultValue 10,000 events, 24 hours, 64 MiB
   */
  window?: WindowOptions
  /** Other windows for some channels or patterns: `{ 'prices/*': { maxEvents: 10 } }`. The narrowest name counts. */
  windows?: ChannelWindows
  /**
   * How a new log writes its ids. A log that is there already keeps its own way, and does not open with a codec that it never
   * had; `switchIds` changes it.
   * @defaultValue ulid() for a new log; for another one, what it has
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
  /**
   * Bytes that all channels may hold together, counted as in their windows. Beyond that the oldest events of all channels go
   * first, and a reader that needs them is told of a gap; publishing goes on. The file needs more than that: up to
   * four times as much where each event of 100 bytes came in a commit of its own.
   * @defaultValue no bound but the windows
   */
  maxBytes?: number
}

/**
 * A log in a folder, written by this process alone. Events, ids and order survive restarts and crashes. Needs the package
 * `lmdb`.
 *
 * @param directory - made if it is not there. On a local disk: the file is mapped into memory, which network file systems
 *   do not keep up to date.
 */
export function lmdbLog(directory: string, options: LmdbLogOptions = {}): LogSource {
  const { durability = 'disk', codec } = options
  if (typeof directory !== 'string' || directory === '') {
    throw new RejoinError("lmdbLog() takes the folder of the log first: lmdbLog('./data', { … }).", {
      code: 'invalid-option',
    })
  }
  if (durability !== 'disk' && durability !== 'os') {
    throw new RejoinError(`durability is ${JSON.stringify(durability)}. Choose 'disk' or 'os'.`, {
      code: 'invalid-option',
    })
  }
  const maxBytes = budgetOf(options.maxBytes)
  const window = windowOf(options.window, defaultWindow)
  const windows = createWindows(window, options.windows)
  return {
    name: 'lmdb',
    async open(environment) {
      const opened = await openLog({ directory, codec, durability, environment })
      return new LmdbLog(opened, { ...options, durability, window, windows, maxBytes }, environment)
    },
  }
}

const defaultWindow = { maxEvents: 10_000, maxAgeMs: 24 * 3_600_000, maxBytes: 64 * 1024 * 1024 }

// Let go of in one commit, over what comes in, and by reads in one turn: a channel that is far over its window shrinks over
// several commits, none of which takes more than some milliseconds. Until then what it still has is served.
const trimAtMost = 512

class LmdbLog implements Log {
  readonly name = 'lmdb'
  readonly durability: 'disk' | 'os'
  readonly window: Required<WindowOptions>
  formats: IdFormats
  readonly history: readonly Branch[]

  readonly #windows: Windows
  readonly #opened: OpenedLog
  readonly #environment: Environment
  readonly #slices: SliceQueue
  #clock: Clock
  readonly #commits: Commits
  readonly #far: FarReads
  readonly #once: StoredOnce
  readonly #stopSweep: Cancel
  readonly #maxBytes: number | undefined
  readonly #tails = new Set<(batch: TailBatch) => void>()
  /** As it was last committed. */
  #state: LogState
  /** Switches of the ids wait for each other: each goes on from the formats of the one before. */
  #switching: Promise<unknown> = Promise.resolve()
  /** The newest position the tails have been told of. What is stored beyond it is not served: a reader could get it twice. */
  #announced: Position
  /** Channels found over their window, and on their way to be trimmed. */
  readonly #untidy = new Set<string>()
  /** What reads of this turn may still let go of. */
  #trimsLeft = trimAtMost
  #tidyingKeys = false
  #shrinking = false
  /** Commits in a row that did nothing but let go of events for the budget. */
  #shrinks = 0
  #closing: Promise<void> | undefined

  constructor(opened: OpenedLog, options: Settings, environment: Environment) {
    const { durability, window, windows, idempotency, maxBytes } = options
    const { forgetAfterMs = 30 * 24 * 3_600_000 } = options
    this.durability = durability
    this.window = window
    this.#windows = windows
    this.#maxBytes = maxBytes
    this.formats = opened.formats
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
    this.#far = createFarReads((pattern, range) => readEvery(this.#wideSource(), pattern, range), environment)
    const { store } = opened
    this.#stopSweep = startSweep({ store, commits: this.#commits, environment, windows, forgetAfterMs, maxBytes })
    if (maxBytes !== undefined && opened.state.heldBytes > maxBytes) this.#shrink()
  }

  async append(entries: readonly NewEvent[], { once }: AppendOptions): Promise<Appended> {
    this.#assertOpen()
    if (entries.length === 0) return { stamps: [], repeated: false }
    for (const { channel } of entries) checkKey(channel)
    return once ? this.#opened.store.reading(() => this.#appendOnce(entries, once)) : this.#append(entries)
  }

  async #append(entries: readonly NewEvent[], once?: Once): Promise<Appended> {
    const at = this.#now()
    const stamps = entries.map(() => ({ position: this.#clock.next(), at }))
    const stored = this.#commits.submit(appendOf(entries, stamps, once))
    if (once) this.#once.begin(once, stamps, stored)
    await stored
    return { stamps, repeated: false }
  }

  /** In the turn in which it finds no earlier one, it begins: of two with one key, the second finds the first. */
  #appendOnce(entries: readonly NewEvent[], once: Once): Promise<Appended> {
    const earlier = this.#once.earlier(once, this.#now())
    if (earlier) return earlier.then((stamps) => ({ stamps, repeated: true }))
    try {
      this.#once.admit(once, this.#state.keys)
    } catch (rejection) {
      this.#tidyKeys()
      throw rejection
    }
    return this.#append(entries, once)
  }

  async invalidate(channel: string): Promise<LogEvent> {
    this.#assertOpen()
    checkKey(channel)
    const stamp = { position: this.#clock.next(), at: this.#now() }
    let entry: LogEvent | undefined
    await this.#commits.submit({
      size: 1000,
      apply(draft) {
        entry = draft.invalidate(channel, stamp)
        return undefined
      },
    })
    return entry as LogEvent
  }

  async end(channel: string): Promise<LogEvent> {
    this.#assertOpen()
    checkKey(channel)
    const stamp = { position: this.#clock.next(), at: this.#now() }
    let entry: LogEvent | undefined
    await this.#commits.submit({
      size: 1,
      apply(draft) {
        entry = draft.end(channel, stamp)
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
      far.set(page.tooFar, await this.#far.read(page.tooFar, range))
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

  async backup(folder: string, options?: BackupOptions): Promise<Backup> {
    this.#assertOpen()
    this.#assertThere()
    return backupStore(this.#opened.store, folder, options)
  }

  async budget(): Promise<LogBudget | undefined> {
    this.#assertOpen()
    return this.#maxBytes === undefined ? undefined : { usedBytes: this.#state.heldBytes, maxBytes: this.#maxBytes }
  }

  switchIds(format: NewIdFormat, { dryRun = false }: IdSwitchOptions = {}): Promise<IdSwitch> {
    const switched = this.#switching.then(() => this.#switchIds(format, dryRun))
    this.#switching = switched.catch(() => undefined)
    return switched
  }

  async #switchIds(format: NewIdFormat, dryRun: boolean): Promise<IdSwitch> {
    this.#assertOpen()
    const planned = planIdSwitch(this.formats, format, { lasting: true })
    if (!planned.isNew || dryRun) return planned.told(this.formats)
    const { last } = this.#clock
    const formats = planned.since(positionBehind(last))
    // What is appended from now on goes into this commit or a later one, so its positions have to suit the new ids.
    this.#clock = createClock({ ...formats.range, now: this.#environment.now, last })
    await this.#commits.submit({
      size: 1,
      apply(draft) {
        draft.formats = formats
        return undefined
      },
    })
    return planned.told(formats)
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
    this.#far.clear()
    // What was published before the close is stored and answered like everything else.
    await this.#commits.settled()
    this.#tails.clear()
    await this.#opened.close()
  }

  async #commit(changes: readonly Change[]): Promise<MadeCommit> {
    const { store } = this.#opened
    this.#assertThere()
    const trimming = { windows: this.#windows, now: this.#now(), atMost: trimAtMost, maxBytes: this.#maxBytes }
    const { draft, made, rejections } = await store.reading(() => {
      const draft = createDraft(store, this.#state, trimming)
      const rejections = new Map<Change, RejoinError>()
      for (const change of changes) {
        const rejection = change.apply(draft)
        if (rejection) rejections.set(change, rejection)
      }
      const events = draft.changes()
      const published = changes.flatMap((change) => (rejections.has(change) ? [] : (change.publish ?? [])))
      const keys = this.#once.changes(published, draft.state, trimming.now)
      const state = { key: stateKey, value: sealLogState(stateKey, draft.state) }
      const format = draft.formats && {
        key: formatKey,
        value: sealFormat(formatKey, { formats: draft.formats, history: this.history }),
      }
      const own = format ? [state, format] : [state]
      const made = { puts: [...events.puts, ...keys.puts, ...own], removals: [...events.removals, ...keys.removals] }
      return { draft, made, rejections }
    })
    // To work a large commit out and to hand it to LMDB both take long, so each has a turn of its own.
    const isLarge = made.puts.length + made.removals.length > largeCommit
    if (isLarge) await new Promise((resolve) => setImmediate(resolve))
    await this.#opened.write(made)
    // Only now is it certain that what was written is still in the folder, and continues what was there.
    this.#assertThere()
    return { draft, rejections }
  }

  #announce({ draft: { state, events, unfinished, formats, isOverBudget } }: MadeCommit): void {
    this.#state = state
    // Before anybody is told of an event of this commit, or resumed that waits for its id.
    if (formats) this.formats = formats
    for (const channel of unfinished) this.#tidy(channel)
    this.#shrinks = events.length === 0 ? this.#shrinks + 1 : 0
    if (isOverBudget) this.#shrink()
    if (events.length === 0) return
    if (events.some(({ kind }) => kind === 'invalidation')) this.#far.clear()
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
    const trimming = { window: this.#windows.of(channel), now, atMost: this.#trimsLeft }
    const { steps, isCutShort } = trimChannel(store, state, [], trimming)
    if (steps > 0 || isCutShort) this.#tidy(channel)
    if (steps > 0) this.#countTrims(steps)
    return state
  }

  /** Of one page and of a thousand: a turn is as long as all that is done in it. */
  #countTrims(steps: number): void {
    if (this.#trimsLeft === trimAtMost) {
      this.#environment.endOfTurn(() => {
        this.#trimsLeft = trimAtMost
      })
    }
    this.#trimsLeft -= steps
  }

  /** Stores what a read has found out, so that the next one need not, and what a commit had no time for. */
  #tidy(channel: string): void {
    if (this.#untidy.has(channel) || this.#closing) return
    this.#untidy.add(channel)
    const done = () => void this.#untidy.delete(channel)
    // Nobody waits for it, and a disk that is full now will be asked again by the next read.
    this.#sweepWhole(channel).then(done, done)
  }

  async #sweepWhole(channel: string): Promise<void> {
    let draft: Draft | undefined
    do {
      await this.#commits.submit({
        size: sweepSize,
        apply(made) {
          draft = made
          made.sweep(channel, 0)
          return undefined
        },
      })
    } while (draft?.unfinished.has(channel) && !this.#closing)
  }

  /** Old keys go with commits, and when all publishes are rejected for want of room, there are none. */
  #tidyKeys(): void {
    if (this.#tidyingKeys) return
    this.#tidyingKeys = true
    const done = () => {
      this.#tidyingKeys = false
    }
    this.#commits.submit({ size: 100, apply: () => undefined }).then(done, done)
  }

  /** Every commit lets go of some events while the log is over its budget. This makes one that does nothing else. */
  #shrink(): void {
    if (this.#shrinking || this.#closing) return
    this.#shrinking = true
    const done = () => {
      this.#shrinking = false
      return undefined
    }
    // Before the publishes that wait, so that the log does not grow further; and some of these after a few of them, because a
    // budget that was made smaller may take minutes.
    const isFirst = this.#shrinks < shrinksInARow
    // Done before the commit is announced, which may ask for the next one. A disk that is full now is asked by the next publish.
    this.#commits.submit({ size: maxSize, apply: done, isFirst }).catch(done)
  }

  /** What is read, as it is now. */
  #source(): WindowSource & BacklogSource {
    const forgottenThrough = () => this.#forgottenThrough()
    return {
      store: this.#opened.store,
      windows: this.#windows,
      get forgottenThrough() {
        return forgottenThrough()
      },
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

type Settings = Omit<LmdbLogOptions, 'codec' | 'windows' | 'maxBytes'> & {
  readonly maxBytes: number | undefined
  readonly durability: 'disk' | 'os'
  readonly window: Required<WindowOptions>
  readonly windows: Windows
}

/** Rejected before anything is stored: half a commit would be worse than none. */
function checkKey(channel: string): void {
  if (channel.length <= longestName) return
  throw new RejoinError(`The channel name has ${channel.length} characters. Use at most ${longestName}.`, {
    code: 'invalid-channel',
  })
}

// LMDB takes keys of 1,978 bytes, and a character has up to three; the protocol's own limit is 256 bytes.
const longestName = 512

function appendOf(entries: readonly NewEvent[], stamps: readonly Stamp[], once: Once | undefined): Change {
  return {
    size: sizeOf(entries),
    publish: once && { once, stamps },
    apply: (draft) => draft.append(entries, stamps),
  }
}

/** A channel is looked up and written, and so is its record of these events. A retained value is looked up and written, too. */
function sizeOf(entries: readonly NewEvent[]): number {
  const channels = entries.length === 1 ? 1 : new Set(entries.map(({ channel }) => channel)).size
  const keyed = entries.filter(({ key }) => key !== undefined).length
  return entries.length + 3 * (channels + keyed)
}

const largeCommit = 256

// A batch of a thousand events lets go of a hundred, and these of two thousand.
const shrinksInARow = 4

// A commit takes several of these, which share what it may let go of.
const sweepSize = 64

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
