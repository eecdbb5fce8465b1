import type { Branch, IdFormat, IdFormats, Position, RejoinError } from '@rejoin/protocol'
import type { Environment } from '../environment.ts'
import type { Complete } from '../with-defaults.ts'

/**
 * A log that is not open yet, as `memoryLog()` and its siblings return it. The hub opens the log with its own environment, and
 * closes it again.
 */
export interface LogSource {
  readonly name: string
  open(environment: Environment): Promise<Log>
}

/**
 * The ordered record behind a hub. Each method states a duty, and what a reader loses when a log breaks that duty. The contract
 * suite in `@rejoin/hub/testing` checks them all.
 */
export interface Log {
  readonly name: string
  /** How safe an event is once `append` has resolved. It may change while the log is open, when the settings of a server do. */
  readonly durability: 'memory' | 'os' | 'disk' | 'replicated'
  /** The bounds of each channel's window. */
  readonly window: Readonly<Complete<WindowOptions>>
  /**
   * The bounds of the window of a channel or a pattern, for a log in which some channels have bounds of their own. Absent for a
   * log in which `window` holds for all channels: operators are then told of that.
   */
  windowOf?(selector: string): Readonly<Complete<WindowOptions>>
  /**
   * How positions are written as ids. One event has one id for ever, so the format of an appended event is fixed. Read this
   * property each time: `switchIds` replaces it. Like `history`, it is up to date when an answer or a batch of the tail arrives.
   */
  readonly formats: IdFormats
  /**
   * The branches of this log, oldest first. The log appends to the last one. When a branch opens, the tail's next batch continues
   * from the first position of that branch, and the history names the branch by then. So readers of lost events are told.
   *
   * When a read, an append or any other call resolves, the last branch is the one on which the log answered. The hub renders
   * positions by this history: on another branch, an event would get the id of a position that it never had.
   */
  readonly history: readonly Branch[]

  /**
   * Appends all entries or none, next to each other, and assigns their positions in that same step. If positions were assigned
   * elsewhere, an event with a smaller id could arrive after an event with a larger id. A reader that had seen the larger id
   * would never get the event with the smaller one. Resolves when the events are as durable as `durability` says.
   *
   * With `once`, a publish that repeats an earlier scope and key appends nothing, and resolves with the stamps of the earlier
   * publish. The same key with another hash rejects with `key-reused`. The log decides both in that same step: otherwise two
   * tries that are under way at once would make two events.
   *
   * Rejects with `channel-ended` when one of the channels has ended, and with `too-large` when one of them would retain more than
   * `retainLimits`. The log decides this, too, in that same step, for all entries or none.
   */
  append(entries: readonly NewEvent[], options: AppendOptions): Promise<Appended>

  /**
   * Invalidates everything that the channel holds. The invalidation is an entry of the log: it has a position, raises
   * `trimmedThrough` to that position, and goes through the tail. If one hub kept it in memory instead, the other hubs and absent
   * readers would never learn of it. A channel that has ended can be invalidated, too: that deletes the channel.
   */
  invalidate(channel: string): Promise<LogEvent>

  /**
   * Ends the channel: nothing can be appended to it any more. The end is an entry of the log that goes through the tail. The
   * events of the channel stay for as long as its window says. For a channel that has ended before, resolves with the entry of
   * that end and appends nothing.
   */
  end(channel: string): Promise<LogEvent>

  /**
   * The events of `selectors` after `after` and not past `through`, in position order, no more than `limit` allows. The selectors
   * are channels and patterns that do not overlap. Every page leads on, by an event or by its `completeThrough`: the hub would
   * ask for a page that stands still for ever.
   *
   * A pattern stands for all its channels, new and forgotten ones included. A read must not look at each of them: there may be a
   * million channels, of which a few have new events. Where the log cannot avoid that look, it takes slices that leave the event
   * loop to others. A gap in one channel of a pattern is announced as a gap of the pattern.
   *
   * `through` must not be past the last event that the caller's tail has delivered: a reader attached past it would get the same
   * events again. The log looks for a gap in the same step as it reads, or after it. With an earlier check, a trim between check
   * and read would lose events in silence.
   */
  read(selectors: readonly string[], after: Position, through: Position, limit: PageLimit): Promise<Page>

  /**
   * The positions of about `most` newest events of `selectors`, after `after` and not past `through`, newest first. It serves
   * readers that ask for the last few events: a read from the oldest event would cost the whole window. Resolves with undefined
   * when an index does not reach back so far; the hub then reads forward. Absent for a log that can only be read forward.
   */
  readBack?(
    selectors: readonly string[],
    after: Position,
    through: Position,
    most: number,
  ): Promise<BackPage | undefined>

  /**
   * The window of each selector as it is now, in the order asked for. The window of a pattern sums up its channels: from the
   * oldest event of all to the newest, and trimmed through the newest position that any of them has lost. That takes a look at
   * every channel of the pattern, in slices that leave the event loop to others.
   */
  windows(selectors: readonly string[]): Promise<readonly Window[]>

  /**
   * The newest event of each key of these channels and patterns, in position order. All of them together stay within
   * `retainLimits`, so that they can be sent in one piece. Resolves with undefined when there are more, or when some are known to
   * be lost: a reader would take an incomplete list for the whole state.
   */
  retained(selectors: readonly string[]): Promise<readonly LogEvent[] | undefined>

  /**
   * Calls `onBatch` with every event appended after `after`: in order, none missing, none twice, and only when it is durable.
   * Never calls it from inside `append`, whose caller may be in the middle of a delivery. The tail mends itself after a broken
   * connection. When it cannot continue from the last position that it delivered, the `after` of its next batch is another
   * position; the hub then sends its readers back to reading.
   */
  tail(after: Position, onBatch: (batch: TailBatch) => void): Promise<Tail>

  /** The channels that the log knows, by name. Channels that have ended and channels without events are among them. */
  channels(page: ChannelPage): Promise<readonly Window[]>

  /**
   * Writes something of its own, as durably as an event. Resolves only when an append would have succeeded, and rejects with
   * `log-unavailable` otherwise. Readiness checks call it every few seconds, and decide by it whether readers are sent here.
   */
  probe(): Promise<void>

  /**
   * For how long, in milliseconds, the tail has had no proof that it is connected and misses nothing. Without this duty, a hub
   * that is cut off from its log would keep its readers with heartbeats while other hubs get the new events. Absent for a log
   * in this process, which cannot be cut off.
   */
  tailSilenceMs?(): number

  /**
   * Why the events of this log may be missing after a restart, for example because its files were removed; undefined as long as
   * all is well. The hub asks every second, so the call must be cheap. After a fault the hub is not ready, and sends its readers
   * elsewhere: otherwise they would stay with a hub whose next events nobody else will ever see. Absent for a log that cannot
   * have such a fault.
   */
  fault?(): RejoinError | undefined

  /**
   * Replaces the note of this hub on the log, keeps it for `forMs`, and resolves with the notes of all hubs, its own included. By
   * these notes an operator sees all hubs from one of them. Absent for a log that only one hub can use.
   */
  meet?(note: string, forMs: number): Promise<readonly string[]>

  /**
   * Posts an order for all hubs of this log, if one is given, and resolves with the orders after `after`, some at a time. The log
   * keeps an order until its time has passed, because revoked rights would otherwise be good on a hub that starts later. By
   * asking, a hub confirms that it has carried out every order up to `after`. A log that only one hub can use has it, too, when
   * it outlives the process: a restart would otherwise give revoked rights back. Absent for a log that keeps nothing.
   */
  orders?(call: OrdersCall): Promise<OrdersPage>

  /**
   * Stores a short text under a name unless one stands there, and resolves with the text that stands there now. All hubs of the
   * log get the same text, however many call at once, and also after a restart. It is as durable as an event when the call
   * resolves. So of several callers with texts of their own, exactly one gets its own back: that is how a ticket is used once,
   * and how hubs agree on a key. A repeated call with the same text changes nothing. The text stays for `forMs` milliseconds,
   * or for ever when that is left out; the log may reject with `overloaded` when too many are kept. Absent for a log that
   * cannot decide this: each hub then keeps such texts for itself, so tickets are good only on the hub that issued them.
   */
  putIfAbsent?: PutIfAbsent

  /**
   * The time by the one clock that all hubs of this log can ask, in milliseconds since 1970. By it hubs agree on when a ticket
   * expires: their own clocks may differ by more than a ticket is good for. Absent for a log in this process.
   */
  clock?(): Promise<number>

  /**
   * Copies the log into a folder, while readers and publishers go on. The copy is the log of one moment, with everything that was
   * acknowledged before the call: a copy of several moments could hold an event and miss the event before it. The copy is marked
   * as a copy. A log that is opened from it marks all channels behind its newest event (`Gap.isMark`), because nobody knows which
   * events came after the copy. Absent for a log whose server has its own way to copy, or that keeps nothing.
   */
  backup?(folder: string, options?: BackupOptions): Promise<Backup>

  /**
   * How much of its budget the log uses. Once all channels together hold more than the budget, the oldest events of all
   * channels go first, some with each append and the rest soon after. The log never rejects an append for that: a hub without
   * room for history must still deliver. An event that goes raises `trimmedThrough` of its channel, like any trim, so a reader
   * that needs it is told of a gap. Resolves with undefined for a log that was opened without a budget. Absent for a log that
   * cannot have one.
   */
  budget?(): Promise<LogBudget | undefined>

  /**
   * Writes the ids of new events in another format, from a position that no event has reached. The formats are part of the log:
   * they outlive a restart and travel in its copies. A shared log takes the position in one step, and no hub renders an event
   * after that position before it knows the new format. Otherwise two hubs would give one event two ids, and a client would take
   * it for two events. Older ids stay good. Rejects a format that the log cannot keep to with `invalid-option`, for example one
   * with another clock. Absent for a log whose ids never change.
   */
  switchIds?(format: NewIdFormat, options?: IdSwitchOptions): Promise<IdSwitch>

  /** The newest position. On a branch without events, that is the first position of the branch. */
  head(): Promise<Position>

  close(): Promise<void>
}

export interface NewEvent {
  readonly channel: string
  readonly type: string
  /** Normalised text: LF line ends, well-formed Unicode. */
  readonly data: string
  /**
   * Set when the data was published as text; left out for JSON. The log keeps it with the event and with the retained event of
   * its key. Without it, a reader would take the text `42` for a number, and could not read the text `one` at all.
   */
  readonly content?: 'text'
  /** The log retains the event beyond the window, until an event with the same channel and key replaces it. */
  readonly key?: string
  /** With a key: the log retains nothing under that key from now on. */
  readonly forget?: boolean
  /**
   * The event is for readers that are connected now. It has a position and goes through the tail, but the log does not hold it.
   * An absent reader never learns of it, so the channel's next event does not name it as `previous`.
   */
  readonly live?: boolean
}

/** What one channel may retain. The hub sends all of it at once, and the log never trims it, so it must not grow for ever. */
export const retainLimits = { keys: 1000, bytes: 1024 * 1024 } as const

export interface AppendOptions {
  /**
   * The hub makes a new token for every append. A log behind a connection must answer a known token with the earlier stamps:
   * client libraries send a command again when its answer was lost, and one publish would become two. A log in this process gets
   * every append once, and need not look at the token.
   */
  readonly token: string
  /** Makes a publisher's retry harmless. The log remembers keys for a bounded time, and a bounded number of them. */
  readonly once?: { readonly scope: string; readonly key: string; readonly hash: string } | undefined
}

export interface Appended {
  /** One for each entry, in the order given. */
  readonly stamps: readonly Stamp[]
  /** True when nothing was appended: `stamps` are those of an earlier publish with the same key or token. */
  readonly repeated: boolean
}

/** The position and the time that an append gave to an entry. */
export interface Stamp {
  readonly position: Position
  /** Wall clock at the append, in milliseconds. */
  readonly at: number
}

export interface LogEvent extends NewEvent, Stamp {
  /**
   * `live` events, invalidations and ends come through the tail only. An invalidation and an end have no type and no data, and no
   * reader is sent one.
   */
  readonly kind: 'event' | 'live' | 'invalidation' | 'end'
  /**
   * The position of the previous event or invalidation of this channel, `origin` for its first. A reader whose cursor lies before
   * that position, and that did not get that event, has lost it. So the hub checks this link even where the log reports no gap.
   */
  readonly previous: Position
}

export interface PageLimit {
  readonly events: number
  /** Bytes of types and data. The event that reaches the limit is the last of the page. */
  readonly bytes: number
}

export interface Page {
  readonly events: readonly LogEvent[]
  /**
   * The read has covered all selectors up to this position. That is the last event's position when `limit` cut the page short,
   * any position after `after` when the search for a pattern's events was cut short, and `through` otherwise. Only this
   * position may become the reader's cursor. With the last event's position, a reader of quiet channels would scan the same
   * range for ever; with `through`, it would skip the events that the limit cut off.
   */
  readonly completeThrough: Position
  /** Set when an event after `after` is gone; `events` is then empty. A page ends before a mark, and the next page is the mark. */
  readonly gap?: Gap
}

export interface BackPage {
  readonly positions: readonly TypedPosition[]
  /** Every event after this position and up to `through` is among `positions`. */
  readonly completeAfter: Position
  /**
   * The earliest position from which all selectors are whole, as far as this page could see. When `completeAfter` reaches it,
   * there are no more events to find.
   */
  readonly wholeAfter: Position
}

export interface TypedPosition {
  readonly position: Position
  readonly type: string
}

export type PutIfAbsent = (name: string, text: string, forMs?: number) => Promise<string>

export interface OrdersCall {
  /** The last order that was carried out here, '' for none. */
  readonly after: string
  /** How long this hub counts as one of the hubs of the log. */
  readonly forMs: number
  /** The order to post. */
  readonly order?: string
  /** When the log may forget the order, in milliseconds since 1970; left out, never. */
  readonly until?: number
  /** The order that `confirmed` counts for. */
  readonly reached?: string
}

export interface OrdersPage {
  /** The id of the order that was posted. */
  readonly posted?: string
  readonly orders: readonly { readonly id: string; readonly order: string }[]
  /** How many hubs use this log, and how many of them have confirmed the order `reached`. */
  readonly nodes: number
  readonly confirmed: number
}

export interface BackupOptions {
  /**
   * Called several times a second while the copy is made.
   * @defaultValue no call
   */
  onProgress?: ((progress: BackupProgress) => void) | undefined
}

export interface BackupProgress {
  readonly copiedBytes: number
  /** An estimate from before the copy. */
  readonly totalBytes: number
}

export interface Backup {
  /** An absolute path. */
  readonly folder: string
  readonly bytes: number
  /** The newest position in the copy. */
  readonly through: Position
}

export interface LogBudget {
  /** The bytes of all channels together, counted as in their windows: types and data in UTF-8. */
  readonly usedBytes: number
  readonly maxBytes: number
}

/** How the ids of new events are to look. */
export type NewIdFormat = Pick<IdFormat, 'codec' | 'version'>

export interface IdSwitchOptions {
  /**
   * Resolves with what a switch would do, and changes nothing.
   * @defaultValue false
   */
  dryRun?: boolean | undefined
}

export interface IdSwitch {
  /** False when the log writes its ids in this format already, so that nothing changed. */
  readonly isNew: boolean
  readonly before: IdFormat
  /** Without `since` when nothing changed, or when it was a dry run. */
  readonly after: IdFormat
}

export interface ChannelPage {
  /** Only channels whose names start with it. */
  readonly prefix: string
  /** Only channels whose names sort after it; '' for all. */
  readonly after: string
  readonly limit: number
}

export interface Gap {
  /** The selectors that lost something after the cursor, as they were asked for. */
  readonly channels: readonly string[]
  /**
   * `forced` when one of the selectors was invalidated after the cursor, `epoch` when a rollback took events from one of them,
   * `expired` when the events only fell out of their windows.
   */
  readonly reason: 'expired' | 'forced' | 'epoch'
  /**
   * The earliest position from which all selectors of the read are whole. For a pattern, that is as far as this read could see: a
   * read looks at the channels that it meets, so a read from there may meet the next gap.
   */
  readonly wholeAfter: Position
  /**
   * True for a *mark*: the loss of a rollback, which lies right before `wholeAfter`. No event has that position, and the log
   * holds nothing of the selectors between the start of the read and it. The events before the mark stay in their windows, and
   * earlier pages have served them. If the log let go of them instead, one lost event would cost the reader all that survived.
   * If a page reached over the mark, a reader would pass the loss without being told.
   */
  readonly isMark?: true
  /**
   * For a mark that was made late, after events were appended behind the loss: the position right behind the loss, an earlier mark.
   * The late mark is for readers that had passed it by then. A reader that was told of a gap there, or later, knows of this loss.
   */
  readonly lostBefore?: Position
}

export interface TailBatch {
  /** The position from which this batch continues: the last one delivered, or the `after` that the tail was opened with. */
  readonly after: Position
  /**
   * The branch on which `after` and all events of the batch lie. Left out, it is the branch that `history` has for `after`. A log
   * that can fail over from one server to another has to name it. One server may answer the hub's calls while its tail still
   * hears from the other; the hub would then give events of a lost branch the ids of the new branch.
   */
  readonly branch?: Branch
  readonly events: readonly LogEvent[]
}

export interface Tail {
  close(): void
}

export interface Window {
  readonly channel: string
  readonly events: number
  readonly bytes: number
  /** The positions of the oldest and the newest event that the channel holds; absent when it holds none. */
  readonly oldest?: Position
  readonly newest?: Position
  /** The newest position that the channel no longer holds, `origin` when nothing was ever trimmed. */
  readonly trimmedThrough: Position
  /** The position of the channel's end; absent when it has not ended. Patterns never end. */
  readonly ended?: Position
  /**
   * True for a channel that was deleted: it was invalidated after its end, so it holds nothing and takes nothing. A loss or a
   * trim after the end is not a deletion: the hub tells readers of a deleted channel for good that there is nothing to read.
   */
  readonly deleted?: true
  /**
   * Why the beginning of the channel is gone; absent while the channel holds everything that was ever published to it. Without
   * it, a reader that asks for the whole channel would take the rest for the whole. A channel that was forgotten begins anew.
   * For a pattern it is set when any of its channels has lost its beginning, or when a channel was forgotten.
   */
  readonly lost?: Gap['reason']
}

/** The events that a channel keeps for readers that return. The bound that is reached first trims the oldest events. */
export interface WindowOptions {
  /**
   * Events kept per channel. With more events, readers can be away for longer. A reader that needs an event that is gone is
   * told of a gap. All three bounds say what is kept for certain: a hub may still have an event in memory after its log has let
   * go of it.
   * @defaultValue 1000
   */
  maxEvents?: number | undefined
  /**
   * Age in milliseconds at which the log lets go of an event. A reader can resume for certain after an absence of that length.
   * @defaultValue 300000
   */
  maxAgeMs?: number | undefined
  /**
   * Bytes kept per channel, types and data in UTF-8. This bounds what one busy channel can cost.
   * @defaultValue 16777216
   */
  maxBytes?: number | undefined
}
