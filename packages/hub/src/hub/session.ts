import {
  type Branch,
  type CloseReason,
  comparePositions,
  encodeCheckpoint,
  encodeClose,
  encodeHello,
  encodeSyncRequired,
  type GapReason,
  isAfter,
  isPattern,
  isSame,
  latest,
  origin,
  type Position,
  type RetainedEvent,
  survivorOf,
} from '@rejoin/protocol'
import type { Cancel, Environment } from '../environment.ts'
import type { Log, Window } from '../log/contract.ts'
import type { SliceQueue } from '../slice-queue.ts'
import type { Blocks } from './blocks.ts'
import type { Ends } from './ends.ts'
import type { Frame } from './frame.ts'
import type { Follower, Live } from './live.ts'
import type { Observers, ReaderFacts } from './observation.ts'
import type { Opening, Start } from './opening.ts'
import type { Presence } from './presence.ts'
import { type Replay, readReplay } from './replay-source.ts'
import type { RetryPolicy } from './retry.ts'
import { shapedParts } from './shape.ts'
import { type SharedBytes, type Sink, shareBytes } from './sink.ts'
import type { Snapshots } from './snapshot.ts'
import type { Stalled, StallWatch } from './stall.ts'
import { type Subscription, wants } from './subscription.ts'
import type { Totals } from './totals.ts'

/** One connected reader: a subscription, a place in the log, and a sink. */
export interface Session extends Follower {
  readonly connection: string
  readonly reader: ReaderFacts
  /** `replaying` reads from the hot window or the log, `live` is pushed to, `ended` gets nothing more. */
  readonly mode: 'replaying' | 'live' | 'ended'
  /** Whether a write would only wait. */
  readonly full: boolean
  /** Bytes that wait for the reader. */
  readonly pending: number
  /** When it connected, in milliseconds since 1970. */
  readonly since: number
  start(): void
  /** Told by the adapter: the sink was full and has emptied. */
  drained(): void
  /** Told by the adapter: the reader has gone. */
  disconnected(): void
  /** Ends the stream with a reasoned `close`. */
  end(reason: CloseReason, options?: EndOptions): void
}

export interface EndOptions {
  /** When the reader should be back; left out, what the hub tells everybody now. */
  readonly retryMs?: number
  /** The error that made the hub do it, for its observers. */
  readonly cause?: unknown
}

export interface SessionContext {
  readonly log: Pick<Log, 'history'>
  /** As the log's own, shared by those who ask at the same time. */
  windows(names: readonly string[]): Promise<readonly Window[]>
  readonly live: Live
  readonly blocks: Blocks
  readonly slices: SliceQueue
  readonly ends: Ends
  /** The newest event of each key of these channels, for a reader that lost its place; undefined where there is none. */
  retained(names: readonly string[]): Promise<readonly RetainedEvent[] | undefined>
  readonly snapshots: Snapshots
  readonly stalls: StallWatch
  readonly retry: RetryPolicy
  readonly environment: Environment
  readonly observers: Observers
  readonly heartbeatMs: number
  readonly totals: Totals
  idOf(position: Position): string
  /** The id of a position on a branch, whatever the log says of it by now. */
  idOn(position: Position, branch: Branch): string
  /** The branch that a position of the log lies on, as the log tells it now. */
  branchOf(position: Position): Branch
  findOpening(subscription: Subscription, start: Start, isGone: () => boolean): Promise<Opening>
  /** Whether the log is away, and readers are served without it. */
  isLocal(): boolean
  readonly presence: Pick<Presence, 'isStale' | 'renew' | 'expiresAt'>
  onEnd(session: Session): void
}

export interface SessionRequest {
  readonly connection: string
  readonly subscription: Subscription
  readonly start: Start
  readonly reader: ReaderFacts
}

// One reader's share of a turn while it catches up.
const sliceBytes = 64 * 1024
const sliceFrames = 1024
// Of a longer value, the first 128 characters show in `hello` which nonsense arrived (§4.4).
const maxEcho = 128
// Events passed over since the last id; further back, a return would search them all again.
const maxUnmarked = 1000
// A cursor that cannot be judged for so long is sent back untouched: another node may know more.
const judgeTimeoutMs = 10_000

export function createSession(context: SessionContext, request: SessionRequest, sink: Sink): Session {
  return new ReaderSession(context, request, sink)
}

/**
 * A class, and not closures over local variables, for its size: tens of thousands of these wait at a time. Some 30
 * closures, and getters of an object literal, for which V8 keeps a dictionary each, made a session 4 KB larger.
 */
class ReaderSession implements Session, Stalled {
  readonly connection: string
  readonly reader: ReaderFacts
  readonly subscription: Subscription
  mode: Session['mode'] = 'replaying'
  full = false

  readonly #context: SessionContext
  readonly #start: Start
  readonly #sink: Sink
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
  /** Set while a return has to be reported: events handed out since the reader came back. */
  #replayed: number | undefined
  /** The age of the first of those. */
  #absenceMs: number | null = null
  #stopJudging: Cancel = nothing
  /** It was handed something that is not in the log, and is not told yet. */
  #isStray = false

  constructor(context: SessionContext, { connection, subscription, start, reader }: SessionRequest, sink: Sink) {
    this.connection = connection
    this.reader = reader
    this.subscription = subscription
    this.#context = context
    this.#start = start
    this.#sink = sink
    this.since = context.environment.now()
    this.#branch = context.live.branch
  }

  get #requested(): string | null {
    return this.#start.from === 'cursor' ? this.#start.cursor : null
  }

  /** What arrived may be as long as a header; nobody needs to read more of it than this, in a frame or in a log. */
  get #shown(): string | null {
    return this.#requested?.slice(0, maxEcho) ?? null
  }

  get #id(): string {
    return this.#context.idOn(this.#cursor, this.#branch)
  }

  #stand(position: Position, branch: Branch): void {
    this.#cursor = position
    this.#branch = branch
  }

  get #facts() {
    return { connection: this.connection, channels: this.subscription.channels, ...this.reader }
  }

  start(): void {
    if (this.mode === 'ended') return
    this.#started = true
    const { observers, live, environment } = this.#context
    const resuming = this.#requested !== null
    observers.tell('connect', { ...this.#facts, requested: this.#shown, resuming })
    if (this.#start.from === 'now') {
      this.#stand(live.head, live.branch)
      this.push(shareBytes([this.#hello({ resumed: false, id: this.#id })]))
      this.#wake()
    } else {
      this.#busy = true
      this.#stopJudging = environment.after(judgeTimeoutMs, () => this.end('log-unavailable'))
      this.#goOnAfter(this.#open())
    }
  }

  /** Finds the place to start from. The greeting waits for the first read, which alone can tell that it is whole. */
  async #open(): Promise<void> {
    const opening = await this.#context.findOpening(this.subscription, this.#start, () => this.#hasEnded())
    if (this.mode === 'ended') return
    if (opening.ok) {
      this.#stand(opening.position, opening.branch)
      this.#replayed = this.#requested === null ? undefined : 0
    } else {
      await this.#announceGap(opening.reason, opening.channels, this.#shown as string, origin)
    }
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
    if (!this.#isLiveCurrent()) {
      this.#goOnAfter(this.#waitForTail(this.#newest.first, this.#newest))
      return
    }
    if (this.#isStray) {
      this.#isStray = false
      this.#goOnAfter(this.#announceGap('forced', this.subscription.channels, this.#id, origin))
      return
    }
    if (!this.#survives()) {
      const from = this.#greeted ? this.#id : (this.#shown as string)
      this.#goOnAfter(this.#announceGap('epoch', this.subscription.channels, from, origin))
      return
    }
    if (isAfter(this.#cursor, this.#context.live.head)) {
      this.#goOnAfter(this.#waitForTail(this.#cursor, this.#branch))
      return
    }
    const { ends, isLocal } = this.#context
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
    return this.#context.log.history.at(-1) as Branch
  }

  /**
   * Whether what the tail has brought is still part of the log. When a branch has opened that the tail has yet to bring, a
   * read from the log and the live side may be of different branches, and nobody can be led from one to the other.
   */
  #isLiveCurrent(): boolean {
    const { log, live } = this.#context
    if (live.branch.epoch === this.#newest.epoch) return true
    const survivor = survivorOf(log.history, live.branch.epoch, live.head)
    return survivor !== undefined && isSame(survivor, live.head)
  }

  /**
   * Whether the log still has the place of this reader. A read from one that was lost would find nothing missing: what the
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
    const { live } = this.#context
    const slice = live.hot.slice(this.subscription.channels, this.#cursor, sliceBytes)
    this.#deliver(slice.frames, slice.cut ? slice.through : live.head, live.branch)
    // The write itself may have ended the session.
    if (this.mode !== 'replaying' || slice.cut || this.full) return false
    if (this.#isFinished()) {
      this.#reportReplay()
      // With a cursor from before what it was passed over, it would be told again and again.
      if (this.#unmarked > 0) this.push(shareBytes([this.#checkpoint()]))
      this.end('finished')
      return true
    }
    if (!live.join(this, this.#cursor, this.#branch)) return false
    this.mode = 'live'
    this.#reportReplay()
    // Its last id may be far behind what it was passed over; the checkpoints of the live side count from now.
    if (this.#unmarked > 0) this.push(shareBytes([this.#checkpoint()]))
    this.#sink.caughtUp?.()
    return true
  }

  async #learnEnd(): Promise<void> {
    const { ends } = this.#context
    this.#endAsOf = ends.changes
    this.#end = await ends.learn(this.subscription.channels)
  }

  /** It has everything up to the end of all its channels. */
  #isFinished(): boolean {
    const { ends } = this.#context
    const { channels } = this.subscription
    const end = ends.knows(channels) ? ends.of(channels) : this.#end
    return end !== undefined && !isAfter(end, this.#cursor)
  }

  async #catchUpFromLog(): Promise<void> {
    const { blocks, live, slices, branchOf } = this.#context
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
      // A reader that only asked for the past has lost nothing: what it asked for begins later now. Looked for anew, the
      // beginning would have moved on again by the time it is found, for as long as a busy channel is trimmed.
      if (!this.#greeted && this.#requested === null) this.#stand(replay.wholeAfter, branchOf(replay.wholeAfter))
      else {
        const had = this.#greeted ? this.#id : (this.#shown as string)
        await this.#announceGap(replay.reason, replay.channels, had, replay.wholeAfter)
      }
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
    const { branchOf } = this.#context
    let slice: Frame[] = []
    let bytes = 0
    for (const frame of frames) {
      // A filter may let through none of a hundred thousand frames, so they count as well.
      if (bytes >= sliceBytes || slice.length >= sliceFrames) {
        this.#deliver(slice, (slice.at(-1) as Frame).position, branchOf((slice.at(-1) as Frame).position))
        if (this.full || !this.#context.slices.hasTime()) return
        slice = []
        bytes = 0
      }
      slice.push(frame)
      bytes += frame.bytes.length
    }
    this.#deliver(slice, through, branchOf(through))
  }

  #deliver(frames: readonly Frame[], through: Position, branch: Branch): void {
    const wanted = frames.filter((frame) => wants(this.subscription, frame))
    const parts = this.#greeted ? [] : this.#greeting()
    const { shape } = this.subscription
    // Most ask for none, and a list of pieces for each of their frames would be most of what a replay allocates.
    if (shape === undefined) for (const frame of wanted) parts.push(frame.bytes)
    else for (const frame of wanted) parts.push(...shapedParts(frame, shape))
    this.#stand(through, branch)
    this.#context.totals.deliveries += wanted.length
    if (this.#replayed !== undefined) this.#countReplayed(wanted)
    this.#unmarked = wanted.length > 0 ? 0 : this.#unmarked + frames.length
    if (this.#unmarked > maxUnmarked) parts.push(this.#checkpoint())
    if (parts.length > 0) this.push(shareBytes(parts))
  }

  #countReplayed(frames: readonly Frame[]): void {
    const [first] = frames
    if (this.#replayed === 0 && first) this.#absenceMs = Math.max(0, this.#context.environment.now() - first.at)
    this.#replayed = (this.#replayed ?? 0) + frames.length
  }

  #greeting(): Uint8Array[] {
    if (this.#requested === null) return [this.#hello({ resumed: false, id: this.#id })]
    const added = this.#start.from === 'cursor' ? (this.#start.added ?? []) : []
    const resumed = this.#hello({ resumed: true, id: this.#requested })
    return added.length > 0 ? [resumed, this.#announceAdded(this.#requested, added)] : [resumed]
  }

  #checkpoint(): Uint8Array {
    this.#unmarked = 0
    return Buffer.from(encodeCheckpoint({ id: this.#id }))
  }

  /** Channels the reader did not have before are whole from its cursor on; what was before that, it has to load. */
  #announceAdded(id: string, names: readonly string[]): Uint8Array {
    const sync = { reason: 'added' as const, channels: names, requested: id, oldest: null, latest: id }
    return Buffer.from(encodeSyncRequired(sync, { id }))
  }

  /** The only thing that moves a cursor over a gap (§4.6), and never back. */
  async #announceGap(reason: GapReason, lost: readonly string[], from: string, wholeAfter: Position): Promise<void> {
    const { observers, snapshots, live, windows } = this.#context
    const { channels } = this.subscription
    while (!this.#isLiveCurrent()) {
      // A branch has opened that the tail has yet to bring. Sent on from the head of now, the reader would stand on what
      // is lost, and be told of the same loss once more when the tail is there.
      await this.#waitForTail(this.#newest.first, this.#newest)
      if (this.mode !== 'replaying') return
    }
    if (!this.#greeted) this.push(shareBytes([this.#hello({ resumed: false })]))
    this.#replayed = undefined
    const absenceMs = reason === 'expired' ? this.#ageOf(this.#cursor) : null
    observers.tell('gap', { ...this.#facts, channels: lost, reason, requested: from, absenceMs })
    const taken = await snapshots.take(channels, latest(this.#cursor, wholeAfter))
    // What follows the place is here almost always, and then the log need not be asked: of a pattern it would look at every
    // channel, which is nothing that a bad cursor should cost.
    const isHere = live.hot.covers(channels, taken.position)
    const asked = isHere && channels.some(isPattern) ? [] : channels
    // While events go past a log that is away, it is not asked at all.
    const [held, retained] = this.#context.isLocal()
      ? [[], undefined]
      : await Promise.all([windows(asked), this.#context.retained(channels)])
    if (this.mode !== 'replaying') return
    // A snapshot that took longer than the window reaches back is of no use: what follows it is gone as well.
    const outlived = held.some((window) => isAfter(window.trimmedThrough, taken.position))
    const isOnBranch = taken.branch.epoch === live.branch.epoch
    const useful = isOnBranch && (!outlived || live.hot.covers(channels, taken.position))
    const { position, branch, state } = useful ? taken : { position: live.head, branch: live.branch, state: {} }
    this.#stand(position, branch)
    this.#unmarked = 0
    const id = this.#id
    const oldest = this.#oldestOf(held)
    // Those were read before the place that counts otherwise, and what came in between would be in neither.
    const values = useful && retained ? { retained } : {}
    const sync = { reason, channels: lost, requested: from, oldest, latest: id, ...state, ...values }
    this.push(shareBytes([Buffer.from(encodeSyncRequired(sync, { id }))]))
  }

  /** A counter clock tells no time. */
  #ageOf({ ms }: Position): number | null {
    return ms > 0 ? Math.max(0, this.#context.environment.now() - ms) : null
  }

  /** Of patterns nobody is told: the answer would differ by whether the log had to be asked. */
  #oldestOf(windows: readonly Window[]): string | null {
    if (this.subscription.channels.some(isPattern)) return null
    const oldest = windows.flatMap((window) => window.oldest ?? []).sort(comparePositions)[0]
    return oldest ? this.#context.idOf(oldest) : null
  }

  #reportReplay(): void {
    if (this.#replayed === undefined || this.#shown === null) return
    const { observers, environment } = this.#context
    const elapsedMs = environment.now() - this.since
    const [requested, replayed, absenceMs] = [this.#shown, this.#replayed, this.#absenceMs]
    observers.tell('replay', { ...this.#facts, requested, replayed, elapsedMs, absenceMs })
    this.#replayed = undefined
  }

  #hello({ resumed, id }: { resumed: boolean; id?: string }): Uint8Array {
    this.#greeted = true
    this.#stopJudging()
    const { heartbeatMs, retry } = this.#context
    // It stands where a cursor does, and can be lost on the way like one.
    const requested = this.#start.from === 'earliest' ? 'earliest' : this.#shown
    const greeting = {
      ...{ resumed, requested, heartbeatMs, connection: this.connection },
      ...this.#expiry(),
    }
    return Buffer.from(
      encodeHello(greeting, { retryMs: retry.forOne(this.subscription.channels), ...(id ? { id } : {}) }),
    )
  }

  /** In advance, so that a client can be back with new rights before these end it. */
  #expiry(): { expiresInMs?: number } {
    const { presence, environment } = this.#context
    const at = presence.expiresAt(this)
    return at === undefined ? {} : { expiresInMs: Math.max(0, Math.floor(at - environment.now())) }
  }

  push(bytes: SharedBytes): boolean {
    if (this.mode === 'ended') return true
    this.#context.totals.bytes += bytes.plain.length
    try {
      if (this.#sink.write(bytes)) return !this.full
    } catch (cause) {
      this.#failSink(cause)
      return true
    }
    this.full = true
    this.#context.stalls.watch(this)
    return false
  }

  /** A sink that throws costs its own reader, and nobody else whose turn it is. */
  #failSink(cause: unknown): void {
    this.#finish('failed', cause)
    this.#sink.destroy()
  }

  #finish(reason: string, cause?: unknown): void {
    if (this.mode === 'ended') return
    const { live, observers, environment, onEnd } = this.#context
    if (this.mode === 'live') live.leave(this)
    this.mode = 'ended'
    this.#stopJudging()
    const durationMs = environment.now() - this.since
    // One that was turned away at the door was never here.
    if (this.#started) observers.tell('close', { ...this.#facts, reason, durationMs, cause })
    onEnd(this)
  }

  end(
    reason: CloseReason,
    { retryMs = this.#context.retry.forOne(this.subscription.channels), cause }: EndOptions = {},
  ): void {
    if (this.mode === 'ended') return
    if (this.full) {
      // It does not read: the farewell would wait behind the rest, and both would hold the socket.
      this.#finish(reason, cause)
      this.#sink.destroy()
      return
    }
    this.push(shareBytes([Buffer.from(encodeClose({ reason }, { retryMs }))]))
    // The farewell itself may have ended it.
    if (this.#hasEnded()) return
    try {
      this.#sink.end()
    } catch (failure) {
      this.#failSink(failure)
      return
    }
    this.#finish(reason, cause)
    if (this.#sink.pending > 0) this.#context.stalls.watch(this)
  }

  #hasEnded(): boolean {
    return this.mode === 'ended'
  }

  get pending(): number {
    return this.#sink.pending
  }

  giveUp(): void {
    if (this.mode !== 'ended') {
      this.#context.observers.tell('stall', { ...this.#facts, pending: this.#sink.pending })
      this.#finish('stalled')
    }
    this.#sink.destroy()
  }

  drained(): void {
    this.full = false
    this.#context.stalls.unwatch(this)
    this.#wake()
  }

  disconnected(): void {
    this.#context.stalls.unwatch(this)
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

const nothing = () => undefined
