import type { Branch, IdFormat, IdFormats, Position, RejoinError } from '@rejoin/protocol'
import type { Environment } from '../environment.ts'

/**
 * A log that is not open yet: what `memoryLog()` and its siblings return. The hub opens it with its own environment and
 * closes it again.
 */
export interface LogSource {
  readonly name: string
  open(environment: Environment): Promise<Log>
}

/**
 * The ordered record behind a hub. Each duty below is checked by the contract suite in `@rejoin/hub/testing`; each says
 * what a reader suffers when it is broken.
 */
export interface Log {
  readonly name: string
  /** How safe an event is once `append` has resolved. May change while the log is open, as when its server is set otherwise. */
  readonly durability: 'memory' | 'os' | 'disk' | 'replicated'
  /** What each channel holds for readers that come back. */
  readonly window: Readonly<Required<WindowOptions>>
  /**
   * What a channel or the channels of a pattern hold, where some have windows of their own. Without it operators are told of
   * `window` for all of them. Absent for a log in which that is so.
   */
  windowOf?(selector: string): Readonly<Required<WindowOptions>>
  /**
   * How positions are written as ids. Fixed for an event once it is appended: one event has one id for ever. Ask for it each
   * time: `switchIds` replaces it. Like `history`, it is the one of today when an answer or a batch of the tail arrives.
   */
  readonly formats: IdFormats
  /**
   * The branches of this log, oldest first; the last is the one appended to. When a branch opens, the tail's next batch
   * continues from its first position, and the history names it by then: readers that stood on what was lost are told.
   *
   * When an answer arrives, to a read, an append or any other question, the last branch is the one it was given on: the hub
   * renders its positions by this history, and an event of another branch would get the id of a position it never had.
   */
  readonly history: readonly Branch[]

  /**
   * Appends all entries or none, next to each other, and assigns their positions in that same step. Positions assigned
   * anywhere else would let an event with a smaller id arrive after one with a larger, and a reader that saw the larger
   * would never be sent the smaller. Resolves when the events are as durable as `durability` says.
   *
   * With `once`, a publish that was appended before under the same scope and key is answered with the events of then and
   * appends nothing; the same key with another hash rejects with `key-reused`. Both are decided in that same step, or two
   * tries under way at once would make two events.
   *
   * Rejects with `channel-ended` when one of the channels has ended, and with `too-large` when one would retain more than
   * `retainLimits`; decided in that same step, for all entries or none.
   */
  append(entries: readonly NewEvent[], options: AppendOptions): Promise<Appended>

  /**
   * Invalidates everything that the channel holds, as an entry of the log: it has a position, raises `trimmedThrough` to it
   * and goes through the tail. Kept in one hub's memory instead, the other hubs and absent readers would never learn. A
   * channel that has ended can be invalidated, too, and is deleted by that.
   */
  invalidate(channel: string): Promise<LogEvent>

  /**
   * Ends the channel, as an entry of the log that goes through the tail: nothing is appended to it any more. What it holds
   * stays for as long as its window says. Of a channel that has ended already, gives the entry of then and appends nothing.
   */
  end(channel: string): Promise<LogEvent>

  /**
   * The events of `selectors`, which are channels or patterns that do not overlap, after `after` and not past `through`, in
   * position order, no more than `limit` allows. A page leads on, with an event or by its `completeThrough`: one that stood
   * still would be asked for again for ever.
   *
   * A pattern stands for all its channels, those that are new or forgotten included. It must not cost a look at each of
   * them: there may be a million, and a few with news. Where it has to, the look leaves the loop to others in between. A gap
   * is then announced as the pattern's.
   *
   * `through` must not be past what the caller's tail has delivered: a reader attached past it would be pushed the same
   * events again. The gap verdict is taken in the same step as the read, or after it: a trim that falls between an
   * earlier check and the read would lose events in silence.
   */
  read(selectors: readonly string[], after: Position, through: Position, limit: PageLimit): Promise<Page>

  /**
   * Where the newest events of `selectors` stand, after `after` and not past `through`, newest first, about `most` of them. For
   * readers that ask for the last few: read from the oldest, they would cost the whole window. Gives undefined where it
   * cannot tell, because an index does not reach back so far; the hub then reads forward. Absent for a log that can only be
   * read forward.
   */
  readBack?(
    selectors: readonly string[],
    after: Position,
    through: Position,
    most: number,
  ): Promise<BackPage | undefined>

  /**
   * What is held of each selector now, in the order asked for. That of a pattern sums its channels up: from the oldest event to
   * the newest, and trimmed through the newest position that any of them has lost. Takes as long as there are channels below it,
   * in slices that leave the loop to others.
   */
  windows(selectors: readonly string[]): Promise<readonly Window[]>

  /**
   * The newest event of each key of these channels and patterns, in position order. At most `retainLimits` in all, so that
   * they can be sent in one piece; undefined when there are more, or when some are known to be lost: an incomplete list would
   * pass for the whole state.
   */
  retained(selectors: readonly string[]): Promise<readonly LogEvent[] | undefined>

  /**
   * Calls `onBatch` with every event appended after `after`: in order, none missing, none twice, only once durable, and
   * never from inside `append`, whose caller may be in the middle of a delivery. Heals itself after a broken connection. A tail that can no longer continue where it stood says so by the `after` of its
   * next batch, which then differs from the last position it delivered; the hub sends its readers back to reading.
   */
  tail(after: Position, onBatch: (batch: TailBatch) => void): Promise<Tail>

  /** The channels it knows, those that have ended or hold nothing any more included, in the order of their names. */
  channels(page: ChannelPage): Promise<readonly Window[]>

  /**
   * Writes something of its own, as durably as an event: resolves only when an append would have succeeded, and rejects
   * with `log-unavailable` otherwise. Asked every few seconds by those who decide whether to send readers here.
   */
  probe(): Promise<void>

  /**
   * For how long, in milliseconds, the tail has had no proof that it is connected and misses nothing. A hub that is cut off
   * from its log would otherwise hold its readers with heartbeats, while the news goes to others. Absent for a log in this
   * process, which cannot be cut off.
   */
  tailSilenceMs?(): number

  /**
   * Why what this log holds can no longer be trusted to be there after a restart: its files were removed, for example. Asked
   * every second, so it must be cheap. From then on the hub is not ready and sends its readers elsewhere; without it, readers
   * would stay with a hub whose next events nobody else will ever see. Absent for a log to which that cannot happen.
   */
  fault?(): RejoinError | undefined

  /**
   * Leaves a note for the other hubs on this log, instead of its last one and for so long, and gives the notes of all
   * of them, its own included. For operators, who see all hubs from one. Absent for a log that only one hub can use.
   */
  meet?(note: string, forMs: number): Promise<readonly string[]>

  /**
   * Posts an order for all hubs of this log, if one is given, and gives those after `after`, some at a time. An order is kept
   * until its time has passed, for hubs that start later: without it, rights that were revoked would be good there. Asking is
   * the confirmation that this hub has carried out everything up to `after`. Absent for a log that only one hub can use.
   */
  orders?(call: OrdersCall): Promise<OrdersPage>

  /**
   * Copies the log into a folder, while readers and publishers go on. The copy is the log of one moment, and holds everything
   * that was acknowledged before the call: a copy of several moments could hold an event and miss the one before it. It knows
   * that it is a copy: whoever opens it tells readers with an id from before, because nobody knows what came after it. Absent
   * for a log whose server has a way of its own, or that keeps nothing.
   */
  backup?(folder: string, options?: BackupOptions): Promise<Backup>

  /**
   * How much of its budget is used, for a log that was opened with one. Once the channels hold more than that together, the oldest
   * events of all channels go first, some with each append and the rest soon after. An append is never refused for it: a
   * hub without room for history must still deliver. What goes raises `trimmedThrough` of its channel like any trim, so
   * a reader that needs it is told. Gives undefined for a log without a budget. Absent for a log that cannot have one.
   */
  budget?(): Promise<LogBudget | undefined>

  /**
   * Writes the ids of new events otherwise, from a position on that no event has reached. The formats are part of the log: they
   * outlive a restart and travel in its copies. On a shared log the position is taken in one step of the log, and no hub
   * renders an event behind it before it knows of it; two hubs would give the event two ids, and a client would take it for two
   * events. Ids from before stay good. Rejects with `invalid-option` what the log could not keep to, such as another clock.
   * Absent for a log whose ids stay as they are.
   */
  switchIds?(format: NewIdFormat, options?: IdSwitchOptions): Promise<IdSwitch>

  /** The newest position. Equals the first position of the newest branch until something is appended to it. */
  head(): Promise<Position>

  close(): Promise<void>
}

export interface NewEvent {
  readonly channel: string
  readonly type: string
  /** Normalised text: LF line ends, well-formed Unicode. */
  readonly data: string
  /**
   * The data was published as text; left out, as JSON. Kept with the event and with what is retained of it: a reader that is told
   * otherwise would take the text `42` for a number, and could not read `one` at all.
   */
  readonly content?: 'text'
  /** The event is kept beyond the window, until another of the same channel and key comes. */
  readonly key?: string
  /** With a key: nothing is kept under it from now on. */
  readonly forget?: boolean
  /**
   * For those who are here: it goes through the tail, in its position, and is not held. Nobody who was away is told of it, so
   * the channel's next event does not name it as its predecessor.
   */
  readonly live?: boolean
}

/** What one channel may retain. A reader is sent all of it at once; and it is never trimmed, so it must not grow for ever. */
export const retainLimits = { keys: 1000, bytes: 1024 * 1024 } as const

export interface AppendOptions {
  /**
   * Made by the hub, new for every append. A log that is reached over a connection must answer a token it has seen with
   * the positions of then: client libraries send a command again when its answer was lost, and one publish would become two.
   * A log in this process cannot be asked twice, and need not look.
   */
  readonly token: string
  /** Makes a publisher's retry harmless. Remembered for a bounded time and number of keys. */
  readonly once?: { readonly scope: string; readonly key: string; readonly hash: string }
}

export interface Appended {
  /** Where each entry stands, in the order given. */
  readonly stamps: readonly Stamp[]
  /** Nothing was appended: these are the stamps of an earlier publish under the same key or token. */
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
   * `live` events, an `invalidation` and an `end` come through the tail only. The last two have no type and no data and are
   * never sent to a reader.
   */
  readonly kind: 'event' | 'live' | 'invalidation' | 'end'
  /**
   * Where this channel's previous event stands, `origin` for its first. A reader whose cursor lies before it, and who was
   * not handed that event, has lost it; so the hub checks this link even where the log reported no gap.
   */
  readonly previous: Position
}

export interface PageLimit {
  readonly events: number
  /** Of data; the event that reaches it is the last. */
  readonly bytes: number
}

export interface Page {
  readonly events: readonly LogEvent[]
  /**
   * Everything up to here has been read, for all channels: the last event's position when `limit` cut the page short, any
   * position after `after` when the search for a pattern's events was cut short, else `through`. It alone may become the reader's cursor. The last event's position would make a reader of quiet
   * channels rescan for ever, `through` would skip what the limit cut off.
   */
  readonly completeThrough: Position
  /** Set when something after `after` is gone; `events` is then empty. */
  readonly gap?: Gap
}

export interface BackPage {
  readonly positions: readonly TypedPosition[]
  /** Every event after this position and up to `through` is among `positions`. */
  readonly completeAfter: Position
  /**
   * From no position before this one are all of the selectors whole, as far as this page could see. Where `completeAfter` comes to
   * it, there is no more.
   */
  readonly wholeAfter: Position
}

export interface TypedPosition {
  readonly position: Position
  readonly type: string
}

export interface OrdersCall {
  /** The last order that was carried out here, '' for none. */
  readonly after: string
  /** How long this hub counts as one of the hubs of the log. */
  readonly forMs: number
  /** To be posted. */
  readonly order?: string
  /** When it may be forgotten, in milliseconds since 1970; left out, never. */
  readonly until?: number
  /** The order that `confirmed` counts for. */
  readonly reached?: string
}

export interface OrdersPage {
  /** The id of the order that was posted. */
  readonly posted?: string
  readonly orders: readonly { readonly id: string; readonly order: string }[]
  /** The hubs of this log, and how many of them have asked for what is after `reached`. */
  readonly nodes: number
  readonly confirmed: number
}

export interface BackupOptions {
  /**
   * Told several times a second how far it is.
   * @defaultValue nobody is told
   */
  onProgress?(progress: BackupProgress): void
}

export interface BackupProgress {
  readonly copiedBytes: number
  /** As far as it can be told beforehand. */
  readonly totalBytes: number
}

export interface Backup {
  /** Where it is, as an absolute path. */
  readonly folder: string
  readonly bytes: number
  /** The newest position in it. */
  readonly through: Position
}

export interface LogBudget {
  /** What all channels hold together, counted as in their windows: types and data in UTF-8. */
  readonly usedBytes: number
  readonly maxBytes: number
}

/** How the ids of new events are to look. */
export type NewIdFormat = Pick<IdFormat, 'codec' | 'version'>

export interface IdSwitchOptions {
  /**
   * Says what would be done, and does nothing.
   * @defaultValue false
   */
  dryRun?: boolean
}

export interface IdSwitch {
  /** False when the log wrote its ids so already: nothing was to be done. */
  readonly isNew: boolean
  readonly before: IdFormat
  /** Without `since` when nothing was done, or when it was a dry run. */
  readonly after: IdFormat
}

export interface ChannelPage {
  /** What their names start with. */
  readonly prefix: string
  /** Names behind this one only; '' for all. */
  readonly after: string
  readonly limit: number
}

export interface Gap {
  /** The channels and patterns that lost something after the cursor, as they were asked for. */
  readonly channels: readonly string[]
  /**
   * `forced` when one of them was invalidated after the cursor, `epoch` when a rollback took events from one of them,
   * `expired` when they only fell out of their windows.
   */
  readonly reason: 'expired' | 'forced' | 'epoch'
  /**
   * The earliest position from which all of the channels asked for are whole. Of a pattern, as far as this read could see: it
   * looks at the channels it meets, and a read from there may meet the next gap.
   */
  readonly wholeAfter: Position
}

export interface TailBatch {
  /** The position this batch continues from: the last one delivered, or the `after` the tail was opened with. */
  readonly after: Position
  /**
   * The branch on which `after` and all events of the batch lie. Left out, it is the one that `history` has for `after`. A log
   * that can be led from one server to another names it: a hub whose questions are answered by one server while its tail still
   * hears from another would otherwise give events of a lost branch the ids of the new one.
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
  /** Of the oldest and the newest event still held; absent when the channel holds none. */
  readonly oldest?: Position
  readonly newest?: Position
  /** The newest position that is no longer held, `origin` when nothing was ever trimmed. */
  readonly trimmedThrough: Position
  /** Where the channel ended, absent when it has not. Patterns never end. */
  readonly ended?: Position
  /**
   * True for a channel that was deleted: it has ended, and was invalidated after its end, so it holds nothing and takes nothing.
   * A loss or a trim after the end is not a deletion: readers would be told for good that there is nothing to read.
   */
  readonly deleted?: true
  /**
   * Why the beginning of the channel is gone; absent while everything that was ever published to it is held. Without it a reader
   * that asks for all of the channel would get the rest and take it for the whole. A channel that was forgotten begins anew. Of a
   * pattern, that of any of its channels, also of one that was forgotten.
   */
  readonly lost?: Gap['reason']
}

/** What a channel keeps for readers that come back. Whichever bound is hit first trims the oldest events. */
export interface WindowOptions {
  /**
   * Events kept per channel. More rides out longer absences; a reader that needs one that is gone is told of a gap. All
   * three bounds say what is kept for certain: a hub may still have an event in memory after its log has let go of it.
   * @defaultValue 1000
   */
  maxEvents?: number
  /**
   * Age in milliseconds at which an event is let go, and with it the longest absence that can be resumed for certain.
   * @defaultValue 300000
   */
  maxAgeMs?: number
  /**
   * Bytes kept per channel, types and data in UTF-8: the bound on what one busy channel can cost.
   * @defaultValue 16777216
   */
  maxBytes?: number
}
