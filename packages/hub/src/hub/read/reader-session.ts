import {
  type Branch,
  type CloseReason,
  encodeCheckpoint,
  encodeClose,
  encodeSyncRequired,
  type GapReason,
  isAfter,
  isPattern,
  isSame,
  latest,
  origin,
  type Position,
  survivorOf,
} from '@rejoin/protocol'
import type { Cancel } from '../../environment.ts'
import type { Gap } from '../../log/contract.ts'
import type { Frame } from '../live/frame.ts'
import { shapedParts } from '../live/shape.ts'
import type { SharedBytes, Sink } from '../live/sink.ts'
import { type Subscription, wants } from '../live/subscription.ts'
import type { ReaderFacts } from '../observation.ts'
import { hasEverything } from './ends.ts'
import { findFreshStart } from './fresh-start.ts'
import { addedFrame, helloFrame } from './greeting.ts'
import type { FoundOpening, Start } from './opening.ts'
import { Outlet, type OutletOwner } from './outlet.ts'
import { ReplayReport } from './replay-report.ts'
import { inSlices } from './replay-slices.ts'
import { type Replay, readReplay } from './replay-source.ts'
import type { EndOptions, Session, SessionRequest } from './session.ts'
import type { SessionContext } from './session-context.ts'
import { tellClose, tellConnect, tellGap, tellReplay, tellStall } from './session-news.ts'
import type { HotReplay } from './shared-replays.ts'
import { isTailCurrent, newestBranch } from './tail-branch.ts'

// Of a longer value, the first 128 characters show in `hello` which nonsense arrived (§4.4).
const maxEcho = 128
// Events passed over since the last id; further back, a return would search them all again.
const maxUnmarked = 1000
// How often the last few events are looked for anew when they were trimmed before they could be read.
const maxSearches = 3
// A cursor that cannot be judged for so long is sent back untouched: another node may know more.
const judgeTimeoutMs = 10_000

export function createSession(context: SessionContext, request: SessionRequest, sink: Sink): Session {
  return new ReaderSession(context, request, sink)
}

/**
 * A class, and not closures over local variables, for its size: tens of thousands of these wait at a time. Some 30
 * closures, and getters of an object literal, for which V8 keeps a dictionary each, made a session 4 KB larger.
 */
class ReaderSession implements Session, OutletOwner {
  readonly connection: string
  readonly reader: ReaderFacts
  readonly subscription: Subscription
  mode: Session['mode'] = 'replaying'

  readonly #context: SessionContext
  readonly #start: Start
  readonly #outlet: Outlet
  readonly since: number
  #busy = false
  #started = false
  #greeted = false
  /** Where the last of its channels ended, as the log said when it was asked. */
  #end: Position | undefined
  /** As of which change of the ends that is. */
  #endAsOf = -1
  /** Everything of the subscription up to here has been handed to the sink. Only kept up while not live. */
  #cursor: Position = origin
  /** The branch that the cursor lies on. Whether it still counts is a matter of ancestry, not of order. */
  #branch: Branch
  /** Events passed over since an id was written. */
  #unmarked = 0
  /** Set while a return has to be reported. */
  #report: ReplayReport | undefined
  #stopJudging: Cancel = nothing
  /** It was handed something that is not in the log, and is not told yet. */
  #isStray = false
  /** What the greeting has to say of the past that it asked for. */
  #past: Past | undefined

  constructor(context: SessionContext, { connection, subscription, start, reader }: SessionRequest, sink: Sink) {
    this.connection = connection
    this.reader = reader
    this.subscription = subscription
    this.#context = context
    this.#start = start
    this.#outlet = new Outlet(sink, context, this)
    this.since = context.environment.now()
    this.#branch = context.live.branch
  }

  get full(): boolean {
    return this.#outlet.full
  }

  get pending(): number {
    return this.#outlet.pending
  }

  get #requested(): string | null {
    return this.#start.from === 'cursor' ? this.#start.cursor : null
  }

  /** What arrived may be as long as a header; nobody needs to read more of it than this, in a frame or in a log. */
  get #shown(): string | null {
    return this.#requested?.slice(0, maxEcho) ?? null
  }

  /** What it asked to go on from. */
  get #had(): string {
    if (this.#greeted) return this.#id
    return this.#shown ?? (this.#start.from === 'last' ? this.#id : 'earliest')
  }

  get #id(): string {
    return this.#context.idOn(this.#cursor, this.#branch)
  }

  #stand(position: Position, branch: Branch): void {
    this.#cursor = position
    this.#branch = branch
  }

  start(): void {
    if (this.mode === 'ended') return
    this.#started = true
    tellConnect(this.#context.observers, this, { requested: this.#shown, resuming: this.#requested !== null })
    if (this.#start.from === 'now') this.#startWithoutCursor()
    else if (this.#start.from === 'cursor') this.#startFrom(this.#start)
    else this.#search(this.#open(this.#start))
  }

  #startFrom(start: Start & { from: 'cursor' }): void {
    const opening = this.#context.openingAtHand(start.cursor)
    if (!opening) {
      this.#search(this.#open(start))
      return
    }
    this.#openAt(opening)
    this.#wake()
    if (!this.#greeted) this.#judgeInTime()
  }

  /** At the head; or at the beginning, of channels that are declared so and of channels that have all ended (§3.4). */
  #startWithoutCursor(): void {
    const { ends, isLocal, live, startsAtBeginning } = this.#context
    const { channels } = this.subscription
    // Now, and not once the log has answered: what is published meanwhile is the reader's.
    this.#stand(live.head, live.branch)
    if (isLocal()) this.#startAtHead()
    else if (startsAtBeginning(channels)) this.#search(this.#open(atBeginning))
    else if (!ends.knows(channels)) this.#search(this.#startOnceKnown())
    else if (ends.of(channels)) this.#search(this.#open(atBeginning))
    else this.#startAtHead()
  }

  async #startOnceKnown(): Promise<void> {
    await this.#learnEnd()
    if (this.mode === 'ended') return
    if (this.#end) await this.#open(atBeginning)
    else this.#startAtHead()
  }

  #startAtHead(): void {
    this.#outlet.write(this.#hello({ resumed: false, id: this.#id }))
    this.#wake()
  }

  #search(opening: Promise<void>): void {
    this.#busy = true
    this.#judgeInTime()
    this.#goOnAfter(opening)
  }

  #judgeInTime(): void {
    this.#stopJudging = this.#context.environment.after(judgeTimeoutMs, () => this.end('log-unavailable'))
  }

  /** Finds the position to start from. The greeting waits for the first read, which alone can tell that it is whole. */
  async #open(start: Start): Promise<void> {
    const opening = await this.#context.findOpening(this.subscription, start, () => this.#hasEnded())
    if (this.mode === 'ended') return
    if (opening.ok) this.#openAt(opening)
    else await this.#announceGap(opening.reason, opening.channels, this.#had, origin)
  }

  #openAt({ position, branch, replay, lost }: FoundOpening): void {
    this.#stand(position, branch)
    if (replay !== undefined || lost) this.#past = { replay, lost }
    if (this.#requested !== null) this.#report = new ReplayReport()
  }

  /** Asks for a slice of time to catch up, unless one is under way. */
  #wake(): void {
    if (this.#busy || this.full || this.mode !== 'replaying') return
    this.#busy = true
    this.#context.slices.add(() => this.#step())
  }

  #goOnAfter(work: Promise<unknown>): void {
    void work.then(
      () => this.#release(),
      (cause) => this.#fail(cause),
    )
  }

  #release(): void {
    this.#busy = false
    this.#wake()
  }

  #fail(cause: unknown): void {
    this.#busy = false
    // The log cannot be read now. The cursor stays the reader's own, who is asked to come back with it.
    this.end('log-unavailable', { cause })
  }

  #step(): void {
    if (this.mode !== 'replaying' || this.full) {
      this.#busy = false
      return
    }
    if (this.#context.presence.isStale(this)) {
      this.#goOnAfter(this.#context.presence.renew(this))
      return
    }
    if (!isTailCurrent(this.#context)) {
      this.#goOnAfter(this.#waitForTail(this.#newest.first, this.#newest))
      return
    }
    if (this.#isStray) {
      this.#isStray = false
      this.#goOnAfter(this.#announceGap('forced', this.subscription.channels, this.#id, origin))
      return
    }
    if (!this.#survives()) {
      this.#goOnAfter(this.#announceGap('epoch', this.subscription.channels, this.#had, origin))
      return
    }
    if (isAfter(this.#cursor, this.#context.live.head)) {
      this.#goOnAfter(this.#waitForTail(this.#cursor, this.#branch))
      return
    }
    const { ends, isLocal, queued } = this.#context
    if (!queued.hasRoom()) {
      this.#goOnAfter(queued.room())
      return
    }
    if (!isLocal() && this.#endAsOf !== ends.changes && !ends.knows(this.subscription.channels)) {
      this.#goOnAfter(this.#learnEnd())
      return
    }
    if (!this.#context.live.hot.covers(this.subscription.channels, this.#cursor)) {
      void this.#catchUpFromLog().then(undefined, (cause) => this.#fail(cause))
      return
    }
    const joined = this.#catchUpFromMemory()
    this.#busy = false
    if (joined) return
    // From inside a delivery nobody can join; the turn has to end first.
    if (!this.full) this.#context.environment.endOfTurn(() => this.#wake())
  }

  get #newest(): Branch {
    return newestBranch(this.#context.log)
  }

  /**
   * Whether the log still has the position of this reader. A read from one that was lost would find nothing missing: what the
   * reader has, and what it would still have been owed, never was.
   */
  #survives(): boolean {
    if (this.#branch.epoch === this.#newest.epoch) return true
    const survivor = survivorOf(this.#context.log.history, this.#branch.epoch, this.#cursor)
    if (!survivor) return false
    if (!isSame(survivor, this.#cursor)) {
      // Its channels have lost nothing, or the next read says so. Its id is of no use any more, and it gets another.
      this.#stand(survivor, this.#context.branchOf(survivor))
      this.#unmarked += 1
    }
    return true
  }

  /** A log that has trimmed past what this hub's tail has brought leaves the reader ahead of the hub for a moment. */
  async #waitForTail(position: Position, branch: Branch): Promise<void> {
    const { environment, live } = this.#context
    const gaveUp = new AbortController()
    const stopWaiting = environment.after(judgeTimeoutMs, () => {
      this.end('log-unavailable')
      gaveUp.abort()
    })
    await live.reached(position, branch, gaveUp.signal)
    stopWaiting()
  }

  /** One slice from the hot window; true when it was the last and the session is live. Synchronous to the end. */
  #catchUpFromMemory(): boolean {
    const { live, replays } = this.#context
    const replay = replays.of(this.subscription, this.#cursor)
    this.#deliver(replay, replay.cut ? replay.through : live.head, live.branch)
    // The write itself may have ended the session.
    if (this.mode !== 'replaying' || replay.cut || this.full) return false
    if (this.#isFinished()) {
      this.#reportReplay()
      // With a cursor from before what it was passed over, it would be told again and again.
      if (this.#unmarked > 0) this.#outlet.write(this.#checkpoint())
      // The checkpoint may have filled the sink, and what waits there goes with a session that ends. This one ends once it is taken.
      if (this.full) return false
      this.end('finished')
      return true
    }
    if (!live.join(this, this.#cursor, this.#branch)) return false
    this.mode = 'live'
    this.#reportReplay()
    // Its last id may be far behind what it was passed over; the checkpoints of the live side count from now.
    if (this.#unmarked > 0) this.#outlet.write(this.#checkpoint())
    this.#outlet.caughtUp()
    return true
  }

  async #learnEnd(): Promise<void> {
    const { ends } = this.#context
    this.#endAsOf = ends.changes
    this.#end = await ends.learn(this.subscription.channels)
  }

  #isFinished(): boolean {
    const { ends } = this.#context
    const { channels } = this.subscription
    return hasEverything(this.#cursor, ends.knows(channels) ? ends.of(channels) : this.#end)
  }

  async #catchUpFromLog(): Promise<void> {
    const { blocks, live, slices } = this.#context
    const from = this.#cursor
    const { branch } = live
    const newest = this.#newest
    const isOnBranch = () => live.branch.epoch === branch.epoch && this.#newest.epoch === newest.epoch
    const replay = await readReplay(blocks, this.subscription.channels, from, live.head)
    if (this.mode !== 'replaying') return
    if (!isOnBranch()) {
      // What was read may be of one branch or the other.
      this.#release()
      return
    }
    if ('wholeAfter' in replay) {
      if (!this.#greeted && this.#requested === null) await this.#beginLater(replay)
      else await this.#announceGap(replay.reason, replay.channels, this.#had, replay.wholeAfter)
      this.#release()
      return
    }
    slices.add(() => {
      if (this.mode === 'replaying' && isOnBranch()) this.#deliverReplay(replay)
      this.#release()
    })
  }

  /** As much of it as the sink takes and the turn has time for. The rest is at hand afterwards, or is read again. */
  #deliverReplay({ frames, through }: Replay): void {
    const { branchOf, slices } = this.#context
    for (const { slice, isLast } of inSlices(frames)) {
      const position = isLast ? through : (slice.at(-1) as Frame).position
      this.#deliver(this.#wantedOf(slice), position, branchOf(position))
      if (this.full || !slices.hasTime()) return
    }
  }

  #wantedOf(frames: readonly Frame[]): Delivery {
    return { frames, wanted: frames.filter((frame) => wants(this.subscription, frame)), bytes: undefined }
  }

  #deliver({ frames, wanted, bytes }: Delivery, through: Position, branch: Branch): void {
    const parts = this.#greeted ? [] : this.#greeting(frames[0])
    if (!bytes) this.#addParts(wanted, parts)
    this.#stand(through, branch)
    this.#context.totals.deliveries += wanted.length
    this.#report?.add(wanted, this.#context.environment.now())
    this.#unmarked = wanted.length > 0 ? 0 : this.#unmarked + frames.length
    if (this.#unmarked > maxUnmarked) parts.push(this.#checkpoint())
    this.#outlet.writeAll(parts, bytes)
  }

  #addParts(wanted: readonly Frame[], parts: Uint8Array[]): void {
    const { shape } = this.subscription
    // Most ask for none, and a list of pieces for each of their frames would be most of what a replay allocates.
    if (shape === undefined) for (const frame of wanted) parts.push(frame.bytes)
    else for (const frame of wanted) parts.push(...shapedParts(frame, shape))
  }

  /**
   * The past that was asked for begins later by now. The last few events are looked for anew, some times: a busy channel may be
   * trimmed again by the time they are found. Then, and to a reader from the beginning, the greeting tells what is gone.
   */
  async #beginLater({ reason, channels, wholeAfter }: Gap): Promise<void> {
    const searches = (this.#past?.searches ?? 0) + 1
    if (this.#start.from === 'last' && searches <= maxSearches) {
      await this.#open(this.#start)
      this.#past = { ...this.#past, searches }
      return
    }
    this.#past = { ...this.#past, lost: { reason, channels }, had: this.#past?.had ?? this.#had }
    this.#stand(wholeAfter, this.#context.branchOf(wholeAfter))
  }

  #greeting(first: Frame | undefined): Uint8Array[] {
    const past = this.#past
    this.#past = undefined
    if (past?.lost) return this.#beheadedGreeting(past.lost, past, first)
    if (this.#requested === null) return [this.#hello({ resumed: false, id: this.#id, replay: past?.replay })]
    const added = this.#start.from === 'cursor' ? (this.#start.added ?? []) : []
    const resumed = this.#hello({ resumed: true, id: this.#requested })
    return added.length > 0 ? [resumed, addedFrame(this.#requested, added)] : [resumed]
  }

  /** To a reader that asked for the beginning, which is gone: it is told, and what is left follows (§3.4). */
  #beheadedGreeting({ reason, channels }: LostPast, { had = this.#had, replay }: Past, first?: Frame): Uint8Array[] {
    const { observers, branchOf, idOn } = this.#context
    const hasPattern = this.subscription.channels.some(isPattern)
    const oldest = first && !hasPattern ? idOn(first.position, branchOf(first.position)) : null
    const id = this.#id
    tellGap(observers, this, channels, { reason, requested: had, absenceMs: null, resuming: false })
    const sync = encodeSyncRequired({ reason, channels, requested: had, oldest, latest: id }, { id })
    return [this.#hello({ resumed: false, replay }), Buffer.from(sync)]
  }

  #checkpoint(): Uint8Array {
    this.#unmarked = 0
    return Buffer.from(encodeCheckpoint({ id: this.#id }))
  }

  /** The only thing that moves a cursor over a gap (§4.6), and never back. */
  async #announceGap(reason: GapReason, lost: readonly string[], from: string, wholeAfter: Position): Promise<void> {
    await this.#untilTailReaches(wholeAfter)
    await this.#untilTailIsCurrent()
    if (this.mode !== 'replaying') return
    const resuming = this.#isResuming
    if (!this.#greeted) this.#outlet.write(this.#hello({ resumed: false }))
    this.#report = undefined
    const absenceMs = reason === 'expired' ? this.#ageOf(this.#cursor) : null
    tellGap(this.#context.observers, this, lost, { reason, requested: from, absenceMs, resuming })
    const { position, branch, oldest, state } = await findFreshStart(this.#context, {
      channels: this.subscription.channels,
      notBefore: latest(this.#cursor, wholeAfter),
      isGone: () => this.mode !== 'replaying',
      tailIsCurrent: () => this.#untilTailIsCurrent(),
    })
    if (this.mode !== 'replaying') return
    this.#stand(position, branch)
    this.#unmarked = 0
    const id = this.#id
    const sync = { reason, channels: lost, requested: from, oldest, latest: id, ...state }
    this.#outlet.write(Buffer.from(encodeSyncRequired(sync, { id })))
  }

  /**
   * The log may have trimmed past what the tail has brought, and the feed as well. Sent on from the head of now, the reader would
   * stand before the same loss again, and be told of it twice.
   */
  async #untilTailReaches(wholeAfter: Position): Promise<void> {
    const { live, branchOf } = this.#context
    if (isAfter(wholeAfter, live.head)) await this.#waitForTail(wholeAfter, branchOf(wholeAfter))
  }

  /**
   * A branch may have opened that the tail has yet to bring. Sent on from the head of now, the reader would stand on what is
   * lost, and be told of the same loss once more when the tail is there.
   */
  async #untilTailIsCurrent(): Promise<void> {
    while (this.mode === 'replaying' && !isTailCurrent(this.#context))
      await this.#waitForTail(this.#newest.first, this.#newest)
  }

  /** A counter clock tells no time. */
  #ageOf({ ms }: Position): number | null {
    return ms > 0 ? Math.max(0, this.#context.environment.now() - ms) : null
  }

  /** It came back with a cursor and has not caught up, nor was it told that it cannot. */
  get #isResuming(): boolean {
    return this.#requested !== null && (!this.#greeted || this.#report !== undefined)
  }

  #reportReplay(): void {
    if (this.#report === undefined || this.#shown === null) return
    const { observers, environment } = this.#context
    const { replayed, absenceMs } = this.#report
    const elapsedMs = environment.now() - this.since
    tellReplay(observers, this, { requested: this.#shown, replayed, elapsedMs, absenceMs })
    this.#report = undefined
  }

  #hello({ resumed, id, replay }: { resumed: boolean; id?: string; replay?: number | undefined }): Uint8Array {
    this.#greeted = true
    this.#stopJudging()
    // The word `earliest` stands where a cursor does, and can be lost on the way like one.
    const requested = this.#start.from === 'earliest' ? 'earliest' : this.#shown
    return helloFrame(this.#context, this, { resumed, requested, id, replay })
  }

  push(bytes: SharedBytes): boolean {
    return this.#outlet.push(bytes)
  }

  onSinkLost(reason: string, cause?: unknown): void {
    if (this.mode === 'ended') return
    if (reason === 'stalled') tellStall(this.#context.observers, this)
    this.#finish(reason, cause)
  }

  #finish(reason: string, cause?: unknown): void {
    if (this.mode === 'ended') return
    const { live, observers, environment, onEnd } = this.#context
    if (this.mode === 'live') live.leave(this)
    this.mode = 'ended'
    this.#stopJudging()
    const durationMs = environment.now() - this.since
    const unfinished = this.#isResuming
      ? { requested: this.#shown as string, found: this.#greeted || null, replayed: this.#report?.replayed ?? 0 }
      : undefined
    // One that was rejected was never here.
    if (this.#started) tellClose(observers, this, { reason, durationMs, cause, unfinished })
    onEnd(this, reason)
  }

  end(
    reason: CloseReason,
    { retryMs = this.#context.retry.forOne(this.subscription.channels), cause }: EndOptions = {},
  ): void {
    if (this.mode === 'ended') return
    if (this.full) {
      // It does not read: the farewell would wait behind the rest, and both would hold the socket.
      this.#finish(reason, cause)
      this.#outlet.destroy()
      return
    }
    this.#outlet.write(Buffer.from(encodeClose({ reason }, { retryMs })))
    // The farewell itself may have ended it.
    if (this.#hasEnded() || !this.#outlet.end()) return
    this.#finish(reason, cause)
  }

  #hasEnded(): boolean {
    return this.mode === 'ended'
  }

  drained(): void {
    this.#outlet.drained()
    this.#wake()
  }

  disconnected(): void {
    this.#outlet.disconnected()
    this.#finish('disconnected')
  }

  stray(): void {
    this.#isStray = true
  }

  leaveLive(position: Position, branch: Branch): void {
    this.#stand(position, branch)
    this.#endAsOf = -1
    this.mode = 'replaying'
    this.#wake()
  }
}

/** A slice of a replay: what was looked at, what of it the reader gets, and the bytes of that where others share them. */
type Delivery = Pick<HotReplay, 'frames' | 'wanted' | 'bytes'>

const atBeginning: Start = { from: 'earliest' }

/** What a search for the past has found, until the reader is greeted with it. */
interface Past {
  readonly replay?: number | undefined
  readonly lost?: LostPast | undefined
  /** Where it was to begin before it had to begin later. */
  readonly had?: string
  /** How often it was looked for anew. */
  readonly searches?: number
}

type LostPast = Pick<Gap, 'reason' | 'channels'>

const nothing = () => undefined
