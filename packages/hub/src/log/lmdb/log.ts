import {
  type Branch,
  createPositionClock,
  type IdCodec,
  type IdFormats,
  isAfter,
  type Position,
  type PositionClock,
  RejoinError,
} from '@rejoin/protocol'
import type { Cancel, Environment } from '../../environment.ts'
import { invalidOption } from '../../invalid-option.ts'
import { sliceQueueOf } from '../../slice-queue.ts'
import type { Complete } from '../../with-defaults.ts'
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
  OrdersCall,
  OrdersPage,
  Page,
  PageLimit,
  PutIfAbsent,
  Stamp,
  Tail,
  TailBatch,
  Window,
  WindowOptions,
} from '../contract.ts'
import { planIdSwitch, positionBehind } from '../id-switch.ts'
import type { IdempotencyOptions, Once } from '../idempotency.ts'
import { budgetOf, type ChannelWindows, createWindows, type Windows, windowOf } from '../window.ts'
import { type Change, type Commits, createCommits } from './commit/commits.ts'
import type { Draft } from './commit/draft.ts'
import { startSweep } from './commit/sweep.ts'
import { createUpkeep, type Upkeep } from './commit/upkeep.ts'
import { backupStore } from './files/backup.ts'
import { type OpenedLog, openLog } from './files/opening.ts'
import type { LogState } from './format/state.ts'
import { createStoredOnce, type StoredOnce } from './idempotency.ts'
import { createLmdbReads, type LmdbReads } from './read/reads.ts'
import { createStoredOrders, createStoredValues } from './texts.ts'

export { backupLmdb, restoreLmdb } from './files/backup.ts'

export interface LmdbLogOptions {
  /**
   * What each channel keeps.
   * @defaultValue 10,000 events, 24 hours, 64 MiB
   */
  window?: WindowOptions | undefined
  /** Other windows for some channels or patterns: `{ 'prices/*': { maxEvents: 10 } }`. The narrowest name counts. */
  windows?: ChannelWindows | undefined
  /**
   * How a new log writes its ids. An existing log keeps its own codec, and does not open with a codec that it never had.
   * `switchIds` changes the codec.
   * @defaultValue ulid() for a new log; the codec of an existing log
   */
  codec?: IdCodec | undefined
  /**
   * When a publish is answered. `disk`: when its events are flushed to the disk; neither a crash nor a power cut loses an event.
   * `os`: when the operating system has the events, which is faster on slow disks. A crash of the process then loses nothing. A
   * power cut may lose the newest events, of which their readers are told, and may damage the file.
   * @defaultValue 'disk'
   */
  durability?: 'disk' | 'os' | undefined
  /**
   * How long the log remembers an empty channel, in milliseconds. To forget a channel frees its name and some 50 bytes of disk.
   * From then on, readers of unknown channels with an older cursor are told of a gap. A channel that has ended takes events again
   * once it is forgotten; readers from before its end are told of a gap.
   * @defaultValue 2592000000 (30 days)
   */
  forgetAfterMs?: number | undefined
  /** How long, and for how many publishes, the log recognises a repeated `Idempotency-Key`. The keys outlive a restart. */
  idempotency?: IdempotencyOptions | undefined
  /**
   * Bytes that all channels may hold together, counted as in their windows. Beyond that the oldest events of all channels go
   * first, and a reader that needs them is told of a gap. Publishing goes on. The file needs more than that: up to four times as
   * much when each event of 100 bytes came in a commit of its own.
   * @defaultValue no bound but the windows
   */
  maxBytes?: number | undefined
  /**
   * How long to wait for another process that writes to the folder, in milliseconds. In a deployment the old process often ends
   * after the new one has started. If it writes on, the log does not open (`log-unavailable`). 0 does not wait.
   * @defaultValue 10000
   */
  lockTimeoutMs?: number | undefined
  /**
   * Called with a warning for the operator, when the log waits for another process.
   * @defaultValue process.emitWarning
   */
  onWarning?: ((message: string) => void) | undefined
}

/**
 * A log in a folder, to which this process alone writes. Events, ids and order survive restarts and crashes. Needs the package
 * `lmdb`.
 *
 * @param directory - made if it is not there. It has to be on a local disk: the file is mapped into memory, and network file
 *   systems do not keep such a mapping up to date.
 */
export function lmdbLog(directory: string, options: LmdbLogOptions = {}): LogSource {
  const { durability = 'disk', codec, lockTimeoutMs = 10_000 } = options
  const { onWarning = (message) => process.emitWarning(message) } = options
  if (typeof directory !== 'string' || directory === '') {
    throw invalidOption("lmdbLog() takes the folder of the log first: lmdbLog('./data', { … }).")
  }
  if (durability !== 'disk' && durability !== 'os') {
    throw invalidOption(`durability is ${JSON.stringify(durability)}. Choose 'disk' or 'os'.`)
  }
  if (!(lockTimeoutMs >= 0)) {
    throw invalidOption(`lockTimeoutMs is ${lockTimeoutMs}. Give a number of milliseconds; 0 does not wait.`)
  }
  const maxBytes = budgetOf(options.maxBytes)
  const window = windowOf(options.window, defaultWindow)
  const windows = createWindows(window, options.windows)
  return {
    name: 'lmdb',
    async open(environment) {
      const opened = await openLog({ directory, codec, durability, lockTimeoutMs, environment, onWarning })
      return new LmdbLog(opened, { ...options, durability, window, windows, maxBytes }, environment)
    },
  }
}

const defaultWindow = { maxEvents: 10_000, maxAgeMs: 24 * 3_600_000, maxBytes: 64 * 1024 * 1024 }

class LmdbLog implements Log {
  readonly name = 'lmdb'
  readonly durability: 'disk' | 'os'
  readonly window: Complete<WindowOptions>
  formats: IdFormats
  readonly history: readonly Branch[]

  readonly #windows: Windows
  readonly #opened: OpenedLog
  readonly #environment: Environment
  #clock: PositionClock
  readonly #commits: Commits
  readonly #upkeep: Upkeep
  readonly #reads: LmdbReads
  readonly #once: StoredOnce
  readonly #orders: (call: OrdersCall) => Promise<OrdersPage>
  readonly #putIfAbsent: PutIfAbsent
  readonly #stopSweep: Cancel
  readonly #maxBytes: number | undefined
  readonly #tails = new Set<(batch: TailBatch) => void>()
  /** The log's state as it was last committed. */
  #state: LogState
  /** Switches of the ids wait for each other, because each continues the formats of the switch before it. */
  #switching: Promise<unknown> = Promise.resolve()
  /** The newest position that the tails have been told of. */
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
    this.#clock = createPositionClock({ ...this.formats.range, now: environment.now, last: opened.state.last })
    const openedAt = { now: environment.now(), last: opened.state.last }
    this.#once = createStoredOnce(opened.store, openedAt, idempotency)
    this.#commits = createCommits({
      ...{ opened, once: this.#once, windows, maxBytes },
      now: () => this.#now(),
      state: () => this.#state,
      onCommit: (draft) => this.#announce(draft),
    })
    this.#upkeep = createUpkeep({ commits: this.#commits, isClosing: () => this.#closing !== undefined })
    const { store } = opened
    this.#orders = createStoredOrders(store, this.#commits, environment.now)
    this.#putIfAbsent = createStoredValues(store, this.#commits, environment.now)
    this.#reads = createLmdbReads({
      store,
      windows,
      marks: opened.marks,
      environment,
      slices: sliceQueueOf(environment),
      now: () => this.#now(),
      state: () => this.#state,
      announced: () => this.#announced,
      requestSweep: (channel) => this.#upkeep.sweep(channel),
      assertOpen: () => this.#assertOpen(),
    })
    this.#stopSweep = startSweep({ store, commits: this.#commits, environment, windows, forgetAfterMs, maxBytes })
    if (maxBytes !== undefined && opened.state.heldBytes > maxBytes) this.#upkeep.shrink()
  }

  /** Not `async`, because each promise less makes a publish cheaper. */
  append(entries: readonly NewEvent[], options: AppendOptions): Promise<Appended> {
    try {
      const { once } = options
      this.#assertOpen()
      if (entries.length === 0) return Promise.resolve({ stamps: [], repeated: false })
      for (const { channel } of entries) checkKey(channel)
      return once ? this.#opened.store.reading(() => this.#appendOnce(entries, once)) : this.#append(entries)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Throws nothing once the change is submitted: within `store.reading`, an error would make the append run a second time. */
  #append(entries: readonly NewEvent[], once?: Once): Promise<Appended> {
    const at = this.#now()
    const stamps: Stamp[] = []
    for (let left = entries.length; left > 0; left -= 1) stamps.push({ position: this.#clock.next(), at })
    const appended = this.#commits.submit(appendOf(entries, stamps, once), { stamps, repeated: false })
    if (once) this.#once.begin(once, stamps, appended)
    return appended
  }

  /**
   * Looks for an earlier publish and begins its own in one turn. So of two publishes with one key, the second finds the first.
   */
  #appendOnce(entries: readonly NewEvent[], once: Once): Promise<Appended> {
    const earlier = this.#once.earlier(once, this.#now())
    if (earlier) return earlier.then((stamps) => ({ stamps, repeated: true }))
    try {
      this.#once.admit(once, this.#state.keys)
    } catch (rejection) {
      // Commits remove old keys. When all publishes are rejected because there are too many, there is no commit but this one.
      this.#upkeep.expireKeys()
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

  async read(selectors: readonly string[], after: Position, through: Position, limit: PageLimit): Promise<Page> {
    this.#assertOpen()
    return this.#reads.page(selectors, after, through, limit)
  }

  async readBack(
    selectors: readonly string[],
    after: Position,
    through: Position,
    most: number,
  ): Promise<BackPage | undefined> {
    this.#assertOpen()
    return this.#reads.back(selectors, after, through, most)
  }

  async windows(selectors: readonly string[]): Promise<readonly Window[]> {
    this.#assertOpen()
    return this.#reads.windows(selectors)
  }

  async retained(selectors: readonly string[]): Promise<readonly LogEvent[] | undefined> {
    this.#assertOpen()
    return this.#reads.retained(selectors)
  }

  windowOf(name: string): Complete<WindowOptions> {
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
    this.#clock.check()
    // A commit without a change writes the log's state all the same.
    await this.#commits.submit({ size: 1, apply: () => undefined })
  }

  async tail(after: Position, onBatch: (batch: TailBatch) => void): Promise<Tail> {
    this.#assertOpen()
    // Reads and adds the tail in one turn: a batch that is announced in between would not reach it.
    await this.#opened.store.reading(() => {
      if (isAfter(this.#announced, after)) onBatch(this.#reads.backlog(after, this.#announced))
      this.#tails.add(onBatch)
    })
    return { close: () => void this.#tails.delete(onBatch) }
  }

  async orders(call: OrdersCall): Promise<OrdersPage> {
    this.#assertOpen()
    return this.#orders(call)
  }

  async putIfAbsent(name: string, text: string, forMs?: number): Promise<string> {
    this.#assertOpen()
    return this.#putIfAbsent(name, text, forMs)
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
    // Appends from now on go into this commit or a later one, so their positions have to suit the new ids.
    this.#clock = createPositionClock({ ...formats.range, now: this.#environment.now, last })
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
    // Publishes from before the close are stored and answered as usual.
    await this.#commits.settled()
    this.#tails.clear()
    await this.#opened.close()
  }

  #announce(draft: Draft): void {
    const { state, events, formats } = draft
    this.#state = state
    // First of all: the tails and the waiting publishers render ids of this commit by the new formats.
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
  readonly window: Complete<WindowOptions>
  readonly windows: Windows
}

/** Rejects a name that LMDB could not store, before it is part of a commit. */
function checkKey(channel: string): void {
  if (channel.length <= longestName) return
  throw new RejoinError(`The channel name has ${channel.length} characters. Use at most ${longestName}.`, {
    code: 'invalid-channel',
  })
}

// LMDB takes keys of 1,978 bytes, and a character takes up to three. The protocol's own limit is 256 bytes.
const longestName = 512

function appendOf(entries: readonly NewEvent[], stamps: readonly Stamp[], once: Once | undefined): Change {
  return {
    size: sizeOf(entries),
    publish: once && { once, stamps },
    apply: (draft) => draft.append(entries, stamps),
  }
}

/** Each channel, each record of a channel's events and each retained event is looked up and written. */
function sizeOf(entries: readonly NewEvent[]): number {
  const channels = entries.length === 1 ? 1 : new Set(entries.map(({ channel }) => channel)).size
  const keyed = entries.filter(({ key }) => key !== undefined).length
  return entries.length + 3 * (channels + keyed)
}
