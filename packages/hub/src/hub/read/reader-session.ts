import { type CloseReason, encodeClose, isAfter, type Point, type Position } from '@rejoin/protocol'
import type { Frame } from '../live/frame.ts'
import { addParts } from '../live/shape.ts'
import type { SharedBytes, Sink } from '../live/sink.ts'
import type { Subscription } from '../live/subscription.ts'
import type { ReaderFacts } from '../observation.ts'
import { hasEverything } from './ends.ts'
import { announceGap, type GapSession } from './gap.ts'
import { Greeting } from './greeting.ts'
import type { FoundOpening, Opening, Start } from './opening.ts'
import { Outlet, type OutletOwner } from './outlet.ts'
import type { GapSegment, Segment, Slice } from './segments.ts'
import type { EndOptions, Session, SessionContext, SessionRequest } from './session.ts'
import { SessionCursor } from './session-cursor.ts'
import { ReplayReport, reportClose, reportConnect, reportReplay, reportStall } from './session-report.ts'
import { isTailCurrent, newestBranch, waitForTail } from './tail-wait.ts'

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
  /** Where the stream starts, until it has started. */
  #opening: Opening | undefined
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

  constructor(context: SessionContext, request: SessionRequest, sink: Sink) {
    const { connection, subscription, start, reader, opening } = request
    this.connection = connection
    this.reader = reader
    this.subscription = subscription
    this.#context = context
    this.#outlet = new Outlet(sink, context, this)
    this.since = context.environment.now()
    this.cursor = new SessionCursor(context.live.head)
    this.#greeting = new Greeting(start)
    this.#opening = opening
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
    return this.#context.idAt(this.cursor.at)
  }

  start(): void {
    if (this.mode === 'ended') return
    this.#started = true
    const { start, shownCursor } = this.#greeting as Greeting
    reportConnect(this.#context.observers, this, { requested: shownCursor, resuming: shownCursor !== null })
    if (start.from === 'now') this.#startWithoutCursor()
    else this.#open(start)
  }

  /** Starts at the head. Channels in `fromStart`, and channels that have all ended, start at their beginning (§3.4). */
  #startWithoutCursor(): void {
    const { ends, isLocal, live, startsAtBeginning } = this.#context
    const { selectors } = this.subscription
    // Before the log has answered: the reader is owed the events that are published meanwhile.
    this.cursor.moveTo(live.head)
    if (isLocal()) this.#startAtHead()
    else if (startsAtBeginning(selectors)) this.#open(atBeginning)
    else if (!ends.knows(selectors)) this.#search(this.#startOnceKnown())
    else if (ends.of(selectors)) this.#open(atBeginning)
    else this.#startAtHead()
  }

  async #startOnceKnown(): Promise<void> {
    await this.#learnEnd()
    if (this.mode === 'ended') return
    if (this.#end) await this.#searchFrom(atBeginning)
    else this.#startAtHead()
  }

  #startAtHead(): void {
    this.#outlet.write(this.#greet(undefined))
    this.#wake()
  }

  #open(start: Start): void {
    const opening = this.#findOpening(start)
    if (opening instanceof Promise || opening.kind === 'gap') {
      this.#search(this.#openOnceFound(opening))
      return
    }
    this.#startAt(opening)
    this.#wake()
    // Almost every reader has been greeted by now, and needs no timer.
    this.#greeting?.startTimer(this.#context, this)
  }

  #search(opening: Promise<void>): void {
    this.#busy = true
    this.#greeting?.startTimer(this.#context, this)
    this.#goOnAfter(opening)
  }

  #searchFrom(start: Start): Promise<void> {
    return this.#openOnceFound(this.#findOpening(start))
  }

  #findOpening(start: Start): Opening | Promise<Opening> {
    this.readsPast = start.from !== 'cursor'
    const found = this.#opening ?? this.#context.findOpening(this.subscription, start, () => this.#hasEnded())
    this.#opening = undefined
    return found
  }

  /** The greeting waits for the first read, because only a read finds a gap. */
  async #openOnceFound(opening: Opening | Promise<Opening>): Promise<void> {
    const found = await opening
    if (this.mode === 'ended') return
    if (found.kind === 'start') this.#startAt(found)
    else await announceGap(this.#context, this, found)
  }

  #startAt(opening: FoundOpening): void {
    this.cursor.moveTo(opening.at)
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
    const { segments, slices } = this.#context
    const segment = segments.read(this.subscription, this.cursor.at)
    if (!(segment instanceof Promise)) {
      this.#take(segment)
      return
    }
    segment.then((read) => slices.add(() => this.#take(read))).catch((cause) => this.#fail(cause))
  }

  #take(segment: Segment): void {
    // Events of a segment from before a branch opened may be of either branch, so they are read again.
    if (this.mode !== 'replaying' || !this.#context.segments.isCurrent(segment)) this.#release()
    else if (segment.kind === 'gap') this.#goOnAfter(this.#meetGap(segment))
    else this.#deliverAll(segment.slices)
  }

  /** Delivers as much as the sink takes and the turn has time for. The next step reads the rest. */
  #deliverAll(all: Iterable<Slice>): void {
    const { environment, slices } = this.#context
    for (const slice of all) {
      this.#deliver(slice)
      // The write may have ended the session.
      if (this.mode !== 'replaying' || this.full) break
      if (slice.isHead) {
        const hasArrived = this.#arrive()
        this.#busy = false
        // No session can join the live side during a delivery. The next turn tries again.
        if (!hasArrived && !this.full) environment.endOfTurn(() => this.#wake())
        return
      }
      if (!slices.hasTime()) break
    }
    this.#release()
  }

  /** Work that has to end before the session may read on, if any. The order counts: each check relies on the checks above it. */
  #workBeforeRead(): Promise<unknown> | undefined {
    const { presence, live, account, isLocal, ends, log } = this.#context
    const { selectors } = this.subscription
    if (presence.isStale(this)) return presence.renew(this)
    if (!isTailCurrent(this.#context)) {
      const branch = newestBranch(log)
      return waitForTail(this.#context, this, { branch, position: branch.first })
    }
    if (this.#isStray) {
      this.#isStray = false
      return announceGap(this.#context, this, { reason: 'forced', channels: selectors })
    }
    if (!this.cursor.survives(this.#context))
      return announceGap(this.#context, this, { reason: 'epoch', channels: selectors })
    const { at } = this.cursor
    // The log trimmed events that the tail has yet to bring, and the reader went on behind them.
    if (isAfter(at.position, live.head.position)) return waitForTail(this.#context, this, at)
    if (account.free() === 0) return account.room()
    if (!isLocal() && this.#endAsOf !== ends.changes && !ends.knows(selectors)) return this.#learnEnd()
    return undefined
  }

  /**
   * The reader has everything up to the head. Returns true when the session is live or has ended. Synchronous, because an event
   * that came during an `await` would be neither in the last slice nor pushed.
   */
  #arrive(): boolean {
    const { live } = this.#context
    if (this.#isFinished()) {
      this.#reportReplay()
      // Without a checkpoint, the reader would return with an older id and be told `finished` again and again.
      if (this.cursor.isUnmarked) this.#outlet.write(this.cursor.checkpoint(this.#context))
      // The checkpoint may have filled the sink. An end would drop it, so the session ends after the drain.
      if (this.full) return false
      this.end('finished')
      return true
    }
    if (!live.join(this, this.cursor.at)) return false
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
    return hasEverything(this.cursor.at.position, ends.knows(selectors) ? ends.of(selectors) : this.#end)
  }

  async #meetGap(gap: GapSegment): Promise<void> {
    const greeting = this.#greeting
    if (this.cursor.knowsLoss(this.#context, gap)) this.cursor.passMark(this.#context, gap.wholeAfter)
    else if (greeting && greeting.start.from !== 'cursor') await this.#startLater(greeting, gap)
    else await announceGap(this.#context, this, gap)
  }

  #deliver({ frames, wanted, bytes, through }: Slice): void {
    const greeting = this.#greet(frames[0])
    this.cursor.moveTo(through)
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
  async #startLater(greeting: Greeting, gap: GapSegment): Promise<void> {
    if (!gap.isMark && greeting.searchAgain()) {
      await this.#searchFrom(greeting.start)
      return
    }
    // Where the reader asked for the last events and all of them stand behind the mark, it misses none between them.
    const isTold = !gap.isMark || greeting.start.from !== 'last'
    if (isTold) greeting.startLater(gap, this.requested)
    this.cursor.moveTo(this.#context.pointAt(gap.wholeAfter))
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

  crossGap(to: Point, frame: string): void {
    this.cursor.moveTo(to)
    this.cursor.mark()
    this.cursor.markSync()
    this.#outlet.write(frame)
  }

  #reportReplay(): void {
    if (this.#report === undefined) return
    const { observers, environment } = this.#context
    const { requested, replayed, absenceMs } = this.#report
    reportReplay(observers, this, { requested, replayed, elapsedMs: environment.now() - this.since, absenceMs })
    this.#report = undefined
  }

  push(bytes: SharedBytes): boolean {
    return this.#outlet.push(bytes)
  }

  onSinkLost(reason: string, cause?: unknown): void {
    if (this.mode === 'ended') return
    if (reason === 'stalled') reportStall(this.#context.observers, this)
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
    if (this.#started) reportClose(observers, this, { reason, durationMs, cause, unfinished })
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

  leaveLive(at: Point): void {
    this.cursor.moveTo(at)
    this.#endAsOf = -1
    this.mode = 'replaying'
    this.#wake()
  }
}

const atBeginning: Start = { from: 'earliest' }
