import { type Branch, type CloseReason, encodeClose, isAfter, type Position } from '@rejoin/protocol'
import type { Gap } from '../../log/contract.ts'
import type { Frame } from '../live/frame.ts'
import { addParts } from '../live/shape.ts'
import type { SharedBytes, Sink } from '../live/sink.ts'
import { type Subscription, wantedOf } from '../live/subscription.ts'
import type { ReaderFacts } from '../observation.ts'
import { hasEverything } from './ends.ts'
import { announceGap, type GapSession } from './gap.ts'
import { Greeting } from './greeting.ts'
import type { FoundOpening, Start } from './opening.ts'
import { Outlet, type OutletOwner } from './outlet.ts'
import { ReplayReport } from './replay-report.ts'
import { inSlices } from './replay-slices.ts'
import { type Replay, readReplay } from './replay-source.ts'
import type { EndOptions, Session, SessionRequest } from './session.ts'
import type { SessionContext } from './session-context.ts'
import { SessionCursor } from './session-cursor.ts'
import { tellClose, tellConnect, tellReplay, tellStall } from './session-news.ts'
import type { HotReplay } from './shared-replays.ts'
import { isTailCurrent, newestBranch } from './tail-branch.ts'
import { waitForTail } from './tail-wait.ts'

export function createSession(context: SessionContext, request: SessionRequest, sink: Sink): Session {
  return new ReaderSession(context, request, sink)
}

/**
 * A class, because tens of thousands of sessions are in memory at a time. As an object literal with some 30 closures and getters,
 * for which V8 keeps a dictionary, a session was 4 KB larger.
 */
class ReaderSession implements GapSession, OutletOwner {
  readonly connection: string
  readonly reader: ReaderFacts
  readonly subscription: Subscription
  readonly cursor: SessionCursor
  mode: Session['mode'] = 'replaying'
  heartbeatSlot = 0
  returnsAs: string | undefined

  readonly #context: SessionContext
  readonly #outlet: Outlet
  readonly since: number
  /** Whether the session waits for a slice of time, or for work that has to end first. */
  #busy = false
  #started = false
  /** Undefined once the reader has been greeted. */
  #greeting: Greeting | undefined
  /** Where the last of the channels ended, as the log said; undefined while one of them goes on. */
  #end: Position | undefined
  /** `ends.changes` from when the log was asked. */
  #endAsOf = -1
  /** Set while a reader that returned with a cursor has not caught up. */
  #report: ReplayReport | undefined
  /** Whether the reader got an event that is not in the log, and has yet to be told so. */
  #isStray = false
  /** Whether the reader asked for the past and has yet to come to its end. */
  readsPast = false

  constructor(context: SessionContext, { connection, subscription, start, reader }: SessionRequest, sink: Sink) {
    this.connection = connection
    this.reader = reader
    this.subscription = subscription
    this.#context = context
    this.#outlet = new Outlet(sink, context, this)
    this.since = context.environment.now()
    this.cursor = new SessionCursor(context.live.branch)
    this.#greeting = new Greeting(start)
    const { shownCursor } = this.#greeting
    if (shownCursor !== null) this.#report = new ReplayReport(shownCursor)
  }

  get full(): boolean {
    return this.#outlet.full
  }

  get pending(): number {
    return this.#outlet.pending
  }

  /** What `sync-required` names as requested. Before the greeting, this is what the reader asked for; later, its id. */
  get requested(): string {
    return this.#greeting?.requested ?? this.#id
  }

  get #id(): string {
    return this.cursor.idOf(this.#context)
  }

  start(): void {
    if (this.mode === 'ended') return
    this.#started = true
    const { start, shownCursor } = this.#greeting as Greeting
    tellConnect(this.#context.observers, this, { requested: shownCursor, resuming: shownCursor !== null })
    const atHand = start.from === 'cursor' ? this.#context.openingAtHand(start.cursor) : undefined
    if (atHand) this.#startAt(atHand)
    else if (start.from === 'now') this.#startWithoutCursor()
    else this.#search(this.#open(start))
  }

  #startAt(opening: FoundOpening): void {
    this.#openAt(opening)
    this.#wake()
    // Almost every reader has been greeted by now, and needs no timer.
    this.#greeting?.startTimer(this.#context, this)
  }

  /** Starts at the head. Channels in `fromStart`, and channels that have all ended, start at their beginning (§3.4). */
  #startWithoutCursor(): void {
    const { ends, isLocal, live, startsAtBeginning } = this.#context
    const { selectors } = this.subscription
    // Before the log has answered: the reader is owed the events that are published meanwhile.
    this.cursor.moveTo(live.head, live.branch)
    if (isLocal()) this.#startAtHead()
    else if (startsAtBeginning(selectors)) this.#search(this.#open(atBeginning))
    else if (!ends.knows(selectors)) this.#search(this.#startOnceKnown())
    else if (ends.of(selectors)) this.#search(this.#open(atBeginning))
    else this.#startAtHead()
  }

  async #startOnceKnown(): Promise<void> {
    await this.#learnEnd()
    if (this.mode === 'ended') return
    if (this.#end) await this.#open(atBeginning)
    else this.#startAtHead()
  }

  #startAtHead(): void {
    this.#outlet.write(this.#greet(undefined))
    this.#wake()
  }

  #search(opening: Promise<void>): void {
    this.#busy = true
    this.#greeting?.startTimer(this.#context, this)
    this.#goOnAfter(opening)
  }

  /** Finds the position to start from. The greeting waits for the first read, because only a read finds a gap. */
  async #open(start: Start): Promise<void> {
    this.readsPast = start.from !== 'cursor'
    const opening = await this.#context.findOpening(this.subscription, start, () => this.#hasEnded())
    if (this.mode === 'ended') return
    if (opening.ok) this.#openAt(opening)
    else await announceGap(this.#context, this, opening)
  }

  #openAt(opening: FoundOpening): void {
    this.cursor.moveTo(opening.position, opening.branch)
    this.cursor.isTorn = opening.isTorn === true
    this.#greeting?.open(opening)
  }

  /** Asks for a slice of time to catch up. */
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
    // The log cannot be read now. The reader keeps its cursor, and is asked to return with it.
    this.end('log-unavailable', { cause })
  }

  #step(): void {
    if (this.mode !== 'replaying' || this.full) {
      this.#busy = false
      return
    }
    const work = this.#workBeforeRead()
    if (work) {
      this.#goOnAfter(work)
      return
    }
    if (!this.#context.live.hot.covers(this.subscription.selectors, this.cursor.position)) {
      void this.#catchUpFromLog().then(undefined, (cause) => this.#fail(cause))
      return
    }
    const joined = this.#catchUpFromMemory()
    this.#busy = false
    if (joined) return
    // No session can join the live side during a delivery. The next turn tries again.
    if (!this.full) this.#context.environment.endOfTurn(() => this.#wake())
  }

  /** Work that has to end before the session may read on, if any. The order counts: each check relies on the checks above it. */
  #workBeforeRead(): Promise<unknown> | undefined {
    const { presence, live, queued, isLocal, ends } = this.#context
    const { selectors } = this.subscription
    if (presence.isStale(this)) return presence.renew(this)
    if (!isTailCurrent(this.#context)) return waitForTail(this.#context, this, this.#newest.first, this.#newest)
    if (this.#isStray) {
      this.#isStray = false
      return announceGap(this.#context, this, { reason: 'forced', channels: selectors })
    }
    if (!this.cursor.survives(this.#context))
      return announceGap(this.#context, this, { reason: 'epoch', channels: selectors })
    const { position, branch } = this.cursor
    // The log trimmed events that the tail has yet to bring, and the reader went on behind them.
    if (isAfter(position, live.head)) return waitForTail(this.#context, this, position, branch)
    if (!queued.hasRoom()) return queued.room()
    if (!isLocal() && this.#endAsOf !== ends.changes && !ends.knows(selectors)) return this.#learnEnd()
    return undefined
  }

  get #newest(): Branch {
    return newestBranch(this.#context.log)
  }

  /**
   * Delivers one slice from the hot window. Returns true when the session is live or has ended. Synchronous, because an event
   * that came during an `await` would be neither in the slice nor pushed.
   */
  #catchUpFromMemory(): boolean {
    const { live, replays } = this.#context
    const replay = replays.of(this.subscription, this.cursor.position)
    this.#deliver(replay, replay.cut ? replay.through : live.head, live.branch)
    // The write may have ended the session.
    if (this.mode !== 'replaying' || replay.cut || this.full) return false
    if (this.#isFinished()) {
      this.#reportReplay()
      // Without a checkpoint, the reader would return with an older id and be told `finished` again and again.
      if (this.cursor.isUnmarked) this.#outlet.write(this.cursor.checkpoint(this.#context))
      // The checkpoint may have filled the sink. An end would drop it, so the session ends after the drain.
      if (this.full) return false
      this.end('finished')
      return true
    }
    if (!live.join(this, this.cursor.position, this.cursor.branch)) return false
    this.mode = 'live'
    this.readsPast = false
    this.cursor.isTorn = false
    this.#reportReplay()
    // The reader's id may be far behind. The live side counts only from now on, and would leave it there.
    if (this.cursor.isUnmarked) this.#outlet.write(this.cursor.checkpoint(this.#context))
    this.#outlet.caughtUp()
    return true
  }

  async #learnEnd(): Promise<void> {
    const { ends } = this.#context
    this.#endAsOf = ends.changes
    this.#end = await ends.learn(this.subscription.selectors)
  }

  #isFinished(): boolean {
    const { ends } = this.#context
    const { selectors } = this.subscription
    return hasEverything(this.cursor.position, ends.knows(selectors) ? ends.of(selectors) : this.#end)
  }

  async #catchUpFromLog(): Promise<void> {
    const { blocks, live, slices } = this.#context
    const from = this.cursor.position
    const { branch } = live
    const newest = this.#newest
    const isOnBranch = () => live.branch.epoch === branch.epoch && this.#newest.epoch === newest.epoch
    const replay = await readReplay(blocks, this.subscription.selectors, from, live.head)
    if (this.mode !== 'replaying') return
    if (!isOnBranch()) {
      // The events may be of either branch, so they are read again.
      this.#release()
      return
    }
    if ('wholeAfter' in replay) {
      const greeting = this.#greeting
      if (this.cursor.knowsLoss(this.#context, replay)) this.cursor.passMark(this.#context, replay.wholeAfter)
      else if (greeting && greeting.start.from !== 'cursor') await this.#startLater(greeting, replay)
      else await announceGap(this.#context, this, replay)
      this.#release()
      return
    }
    slices.add(() => {
      if (this.mode === 'replaying' && isOnBranch()) this.#deliverReplay(replay)
      this.#release()
    })
  }

  /** Delivers as much as the sink takes and the turn has time for. The next step reads the rest, from kept blocks if it can. */
  #deliverReplay({ frames, through }: Replay): void {
    const { branchOf, slices } = this.#context
    for (const { slice, isLast } of inSlices(frames)) {
      const position = isLast ? through : (slice.at(-1) as Frame).position
      const delivery = { frames: slice, wanted: wantedOf(this.subscription, slice), bytes: undefined }
      this.#deliver(delivery, position, branchOf(position))
      if (this.full || !slices.hasTime()) return
    }
  }

  #deliver({ frames, wanted, bytes }: Delivery, through: Position, branch: Branch): void {
    const greeting = this.#greet(frames[0])
    this.cursor.moveTo(through, branch)
    this.#context.totals.deliveries += wanted.length
    this.#report?.add(wanted, this.#context.environment.now())
    if (wanted.length > 0) this.cursor.mark()
    else this.cursor.passOver(frames.length)
    if (bytes) this.#outlet.writeShared(greeting, bytes)
    else this.#outlet.writeAll(this.#partsOf(greeting, wanted))
  }

  #partsOf(greeting: string, wanted: readonly Frame[]): Uint8Array[] {
    const parts: Uint8Array[] = greeting === '' ? [] : [Buffer.from(greeting)]
    addParts(wanted, this.subscription.shape, parts)
    if (this.cursor.needsCheckpoint) parts.push(Buffer.from(this.cursor.checkpoint(this.#context)))
    return parts
  }

  /** The past that the reader asked for begins with a mark, or was trimmed before the session could read it. */
  async #startLater(greeting: Greeting, gap: Gap): Promise<void> {
    if (!gap.isMark && greeting.searchAgain()) {
      await this.#open(greeting.start)
      return
    }
    // Where the reader asked for the last events and all of them stand behind the mark, it misses none between them.
    const isTold = !gap.isMark || greeting.start.from !== 'last'
    if (isTold) greeting.startLater(gap, this.requested)
    this.cursor.moveTo(gap.wholeAfter, this.#context.branchOf(gap.wholeAfter))
    if (isTold) this.cursor.markSync()
  }

  /** The frames that the stream begins with; '' once they are written. */
  #greet(first: Frame | undefined): string {
    const greeting = this.#greeting
    this.#greeting = undefined
    return greeting ? greeting.frames(this.#context, this, this.#id, first) : ''
  }

  failResume(): ReplayReport | undefined {
    const report = this.#report
    this.#report = undefined
    const greeting = this.#greeting
    this.#greeting = undefined
    if (greeting) {
      const hello = { resumed: false, id: undefined, replay: undefined }
      this.#outlet.write(greeting.hello(this.#context, this, hello))
    }
    return report
  }

  crossGap(position: Position, branch: Branch, frame: string): void {
    this.cursor.moveTo(position, branch)
    this.cursor.mark()
    this.cursor.markSync()
    this.#outlet.write(frame)
  }

  #reportReplay(): void {
    if (this.#report === undefined) return
    const { observers, environment } = this.#context
    const { requested, replayed, absenceMs } = this.#report
    tellReplay(observers, this, { requested, replayed, elapsedMs: environment.now() - this.since, absenceMs })
    this.#report = undefined
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
    this.#greeting?.stopTimer()
    const durationMs = environment.now() - this.since
    const unfinished = this.#report?.unfinished(this.#greeting ? null : true)
    // A session that never started was rejected: nobody was told of its `connect`.
    if (this.#started) tellClose(observers, this, { reason, durationMs, cause, unfinished })
    onEnd(this, reason)
  }

  end(
    reason: CloseReason,
    { retryMs = this.#context.retry.forOne(this.subscription.selectors), cause }: EndOptions = {},
  ): void {
    if (this.mode === 'ended') return
    if (this.full) {
      // The reader does not read. The frame `close` would wait behind the other bytes and keep the socket open.
      this.#finish(reason, cause)
      this.#outlet.destroy()
      return
    }
    this.#outlet.write(encodeClose({ reason }, { retryMs }))
    // The write may have ended the session.
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
    this.cursor.moveTo(position, branch)
    this.#endAsOf = -1
    this.mode = 'replaying'
    this.#wake()
  }
}

/** A slice of a replay: all frames, the frames that the reader wants, and the bytes of these when other readers share them. */
type Delivery = Pick<HotReplay, 'frames' | 'wanted' | 'bytes'>

const atBeginning: Start = { from: 'earliest' }
