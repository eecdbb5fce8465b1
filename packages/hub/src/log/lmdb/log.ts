import {
  type Branch,
  type Clock,
  createClock,
  type IdCodec,
  type IdFormats,
  isAfter,
  type Position,
  RejoinError,
} from '@rejoin/protocol'
import type { Cancel, Environment } from '../../environment.ts'
import { sliceQueueOf } from '../../slice-queue.ts'
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
import { planIdSwitch, positionBehind } from '../id-switch.ts'
import type { IdempotencyOptions, Once } from '../idempotency.ts'
import { budgetOf, type ChannelWindows, createWindows, type Windows, windowOf } from '../window.ts'
import { backupStore } from './backup.ts'
import { type Change, type Commits, createCommits } from './commits.ts'
import type { Draft } from './draft.ts'
import { createStoredOnce, type StoredOnce } from './once.ts'
import { type OpenedLog, openLog } from './opening.ts'
import { createLmdbReads, type LmdbReads } from './reads.ts'
import type { LogState } from './state.ts'
import { startSweep } from './sweep.ts'
import { createUpkeep, type Upkeep } from './upkeep.ts'
import { type WrittenCommit, writeCommit } from './write-commit.ts'

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

class LmdbLog implements Log {
  readonly name = 'lmdb'
  readonly durability: 'disk' | 'os'
  readonly window: Required<WindowOptions>
  formats: IdFormats
  readonly history: readonly Branch[]

  readonly #windows: Windows
  readonly #opened: OpenedLog
  readonly #environment: Environment
  #clock: Clock
  readonly #commits: Commits
  readonly #upkeep: Upkeep
  readonly #reads: LmdbReads
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
    this.#state = opened.state
    this.#announced = opened.state.last
    this.#clock = createClock({ ...this.formats.range, now: environment.now, last: opened.state.last })
    this.#once = createStoredOnce(opened.store, idempotency)
    this.#commits = createCommits({
      commit: (changes) => this.#commit(changes),
      onCommit: (made) => this.#announce(made),
    })
    this.#upkeep = createUpkeep({ commits: this.#commits, isClosing: () => this.#closing !== undefined })
    const { store } = opened
    this.#reads = createLmdbReads({
      store,
      windows,
      environment,
      slices: sliceQueueOf(environment),
      now: () => this.#now(),
      state: () => this.#state,
      announced: () => this.#announced,
      onUntidy: (channel) => this.#upkeep.tidy(channel),
      assertOpen: () => this.#assertOpen(),
    })
    this.#stopSweep = startSweep({ store, commits: this.#commits, environment, windows, forgetAfterMs, maxBytes })
    if (maxBytes !== undefined && opened.state.heldBytes > maxBytes) this.#upkeep.shrink()
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
      // Old keys go with commits. When all publishes are rejected for want of room, there is no commit but this one.
      this.#upkeep.tidyKeys()
      throw rejection
    }
    return this.#append(entries, once)
  }

  async invalidate(channel: string): Promise<LogEvent> {
    return this.#mark(channel, 1000, (draft, stamp) => draft.invalidate(channel, stamp))
  }

  async end(channel: string): Promise<LogEvent> {
    return this.#mark(channel, 1, (draft, stamp) => draft.end(channel, stamp))
  }

  async #mark(channel: string, size: number, mark: (draft: Draft, stamp: Stamp) => LogEvent): Promise<LogEvent> {
    this.#assertOpen()
    checkKey(channel)
    const stamp = { position: this.#clock.next(), at: this.#now() }
    let entry: LogEvent | undefined
    await this.#commits.submit({
      size,
      apply(draft) {
        entry = mark(draft, stamp)
        return undefined
      },
    })
    return entry as LogEvent
  }

  async read(names: readonly string[], after: Position, through: Position, limit: PageLimit): Promise<Page> {
    this.#assertOpen()
    return this.#reads.page(names, after, through, limit)
  }

  async readBack(
    names: readonly string[],
    after: Position,
    through: Position,
    most: number,
  ): Promise<BackPage | undefined> {
    this.#assertOpen()
    return this.#reads.back(names, after, through, most)
  }

  async windows(names: readonly string[]): Promise<readonly Window[]> {
    this.#assertOpen()
    return this.#reads.windows(names)
  }

  async retained(names: readonly string[]): Promise<readonly LogEvent[] | undefined> {
    this.#assertOpen()
    return this.#reads.retained(names)
  }

  windowOf(name: string): Required<WindowOptions> {
    return this.#windows.of(name)
  }

  async channels(page: ChannelPage): Promise<readonly Window[]> {
    this.#assertOpen()
    return this.#reads.channels(page)
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
      if (isAfter(this.#announced, after)) onBatch(this.#reads.backlog(after, this.#announced))
      this.#tails.add(onBatch)
    })
    return { close: () => void this.#tails.delete(onBatch) }
  }

  async backup(folder: string, options?: BackupOptions): Promise<Backup> {
    this.#assertOpen()
    this.#opened.assertThere()
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
    this.#reads.clear()
    // What was published before the close is stored and answered like everything else.
    await this.#commits.settled()
    this.#tails.clear()
    await this.#opened.close()
  }

  #commit(changes: readonly Change[]): Promise<WrittenCommit> {
    const basis = { opened: this.#opened, state: this.#state, once: this.#once, now: this.#now() }
    return writeCommit({ ...basis, windows: this.#windows, maxBytes: this.#maxBytes }, changes)
  }

  #announce({ draft }: WrittenCommit): void {
    const { state, events, formats } = draft
    this.#state = state
    // Before anybody is told of an event of this commit, or resumed that waits for its id.
    if (formats) this.formats = formats
    this.#upkeep.afterCommit(draft)
    if (events.length === 0) return
    if (events.some(({ kind }) => kind === 'invalidation')) this.#reads.clear()
    const batch = { after: this.#announced, events }
    this.#announced = state.last
    for (const onBatch of this.#tails) onBatch(batch)
  }

  #now(): number {
    return Math.max(0, Math.floor(this.#environment.now()))
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
