import {
  type CloseReason,
  comparePositions,
  encodeCheckpoint,
  encodeClose,
  encodeHello,
  encodeSyncRequired,
  type GapReason,
  isAfter,
  isLost,
  latest,
  origin,
  type Position,
} from '@rejoin/protocol'
import type { Cancel, Environment } from '../environment.ts'
import type { Log, Window } from '../log/contract.ts'
import type { Blocks } from './blocks.ts'
import type { CatchUpQueue } from './catch-up.ts'
import type { Frame } from './frame.ts'
import type { Follower, Live } from './live.ts'
import type { Observers, ReaderFacts } from './observation.ts'
import type { Opening, Start } from './opening.ts'
import type { Presence } from './presence.ts'
import { type Replay, readReplay } from './replay-source.ts'
import type { RetryPolicy } from './retry.ts'
import { type SharedBytes, type Sink, shareBytes } from './sink.ts'
import type { Snapshots } from './snapshot.ts'
import type { Stalled, StallWatch } from './stall.ts'
import { type Subscription, wants } from './subscription.ts'

/** One connected reader: a subscription, a place in the log, and a sink. */
export interface Session extends Follower {
  readonly connection: string
  readonly reader: ReaderFacts
  /** `replaying` reads from the hot window or the log, `live` is pushed to, `ended` gets nothing more. */
  readonly mode: 'replaying' | 'live' | 'ended'
  /** Whether a write would only wait. */
  readonly full: boolean
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
  readonly log: Pick<Log, 'windows' | 'history'>
  readonly live: Live
  readonly blocks: Blocks
  readonly catchUp: CatchUpQueue
  readonly snapshots: Snapshots
  readonly stalls: StallWatch
  readonly retry: RetryPolicy
  readonly environment: Environment
  readonly observers: Observers
  readonly heartbeatMs: number
  idOf(position: Position): string
  findOpening(subscription: Subscription, start: Start): Promise<Opening>
  readonly presence: Pick<Presence, 'isStale' | 'renew'>
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
// Of a longer value, the first 128 characters show in `hello` which nonsense arrived (§4.4).
const maxEcho = 128
// Events passed over since the last id; further back, a return would search them all again.
const maxUnmarked = 1000
// A cursor that cannot be judged for so long is sent back untouched: another node may know more.
const judgeTimeoutMs = 10_000

export function createSession(context: SessionContext, request: SessionRequest, sink: Sink): Session {
  const { live, environment, observers, idOf } = context
  const { connection, subscription, reader } = request
  const { channels } = subscription
  const requested = request.start.from === 'cursor' ? request.start.cursor : null
  // What arrived may be as long as a header; nobody needs to read more of it than this, in a frame or in a log.
  const shown = requested === null ? null : requested.slice(0, maxEcho)
  const facts = { connection, channels, ...reader }
  const startedAt = environment.now()

  let mode: Session['mode'] = 'replaying'
  let full = false
  let busy = false
  let started = false
  let greeted = false
  /** Everything of the subscription up to here has been handed to the sink. Only kept up while not live. */
  let cursor: Position = origin
  /** Events passed over since an id was written. */
  let unmarked = 0
  /** Set while a return has to be reported: events handed out since the reader came back. */
  let replayed: number | undefined
  let stopJudging: Cancel = () => undefined

  function start(): void {
    if (mode === 'ended') return
    started = true
    observers.tell('connect', { ...facts, requested: shown, resuming: requested !== null })
    if (request.start.from === 'now') {
      cursor = live.head
      push(shareBytes([hello({ resumed: false, id: idOf(cursor) })]))
      wake()
    } else {
      busy = true
      stopJudging = environment.after(judgeTimeoutMs, () => end('log-unavailable'))
      void open().then(release, fail)
    }
  }

  /** Finds the place to start from. The greeting waits for the first read, which alone can tell that it is whole. */
  async function open(): Promise<void> {
    const opening = await context.findOpening(subscription, request.start)
    if (mode === 'ended') return
    if (opening.ok) {
      cursor = opening.position
      replayed = requested === null ? undefined : 0
    } else {
      await announceGap(opening.reason, opening.channels, shown as string, origin)
    }
  }

  /** Asks for a slice of time to catch up, unless one is under way. */
  function wake(): void {
    if (busy || full || mode !== 'replaying') return
    busy = true
    context.catchUp.add(step)
  }

  function release(): void {
    busy = false
    wake()
  }

  function fail(cause: unknown): void {
    busy = false
    // The log cannot be read now. The cursor stays the reader's own, who is asked to come back with it.
    end('log-unavailable', { cause })
  }

  function step(): void {
    if (mode !== 'replaying' || full) {
      busy = false
      return
    }
    if (context.presence.isStale(session)) {
      void context.presence.renew(session).then(release, fail)
      return
    }
    if (isStranded(cursor)) {
      const from = greeted ? idOf(cursor) : (shown as string)
      void announceGap('epoch', channels, from, origin).then(release, fail)
      return
    }
    if (!live.hot.covers(channels, cursor)) {
      void catchUpFromLog().then(undefined, fail)
      return
    }
    const joined = catchUpFromMemory()
    busy = false
    if (joined) return
    // From inside a delivery nobody can join; the turn has to end first.
    if (!full) environment.endOfTurn(wake)
  }

  /**
   * The log has lost this place by a rollback, and this hub has followed it to the new branch. A read from here would find
   * nothing missing: what the reader has, and what it would still have been owed, never was.
   */
  function isStranded(position: Position): boolean {
    const { history } = context.log
    return isLost(history, position) && !isLost(history, live.head)
  }

  /** One slice from the hot window; true when it was the last and the session is live. Synchronous to the end. */
  function catchUpFromMemory(): boolean {
    const slice = live.hot.slice(channels, cursor, sliceBytes)
    deliver(slice.frames, slice.cut ? (slice.frames.at(-1) as Frame).position : live.head)
    // The write itself may have ended the session.
    if (mode !== 'replaying' || slice.cut || full || !live.join(session, cursor)) return false
    mode = 'live'
    reportReplay()
    // Its last id may be far behind what it was passed over; the checkpoints of the live side count from now.
    if (unmarked > 0) push(shareBytes([checkpoint()]))
    return true
  }

  async function catchUpFromLog(): Promise<void> {
    const from = cursor
    const replay = await readReplay(context.blocks, channels, from, live.head)
    if (mode !== 'replaying') return
    if (isStranded(from)) {
      release()
      return
    }
    if ('wholeAfter' in replay) {
      // A reader that only asked for the past has lost nothing: what it asked for begins later now.
      if (!greeted && requested === null) await open()
      else
        await announceGap(replay.reason, replay.channels, greeted ? idOf(from) : (shown as string), replay.wholeAfter)
      release()
      return
    }
    context.catchUp.add(() => {
      if (mode === 'replaying') deliverReplay(replay)
      release()
    })
  }

  /** As much of it as the sink takes. The rest is at hand when it has drained, or is read again. */
  function deliverReplay({ frames, through }: Replay): void {
    let slice: Frame[] = []
    let bytes = 0
    for (const frame of frames) {
      if (bytes >= sliceBytes) {
        deliver(slice, (slice.at(-1) as Frame).position)
        if (full) return
        slice = []
        bytes = 0
      }
      slice.push(frame)
      bytes += frame.bytes.length
    }
    deliver(slice, through)
  }

  function deliver(frames: readonly Frame[], through: Position): void {
    const wanted = frames.filter((frame) => wants(subscription, frame))
    const parts = greeted ? [] : greeting()
    for (const frame of wanted) parts.push(frame.bytes)
    cursor = through
    if (replayed !== undefined) replayed += wanted.length
    unmarked = wanted.length > 0 ? 0 : unmarked + frames.length
    if (unmarked > maxUnmarked) parts.push(checkpoint())
    if (parts.length > 0) push(shareBytes(parts))
  }

  function greeting(): Uint8Array[] {
    if (requested === null) return [hello({ resumed: false, id: idOf(cursor) })]
    const added = request.start.from === 'cursor' ? (request.start.added ?? []) : []
    const resumed = hello({ resumed: true, id: requested })
    return added.length > 0 ? [resumed, announceAdded(requested, added)] : [resumed]
  }

  function checkpoint(): Uint8Array {
    unmarked = 0
    return Buffer.from(encodeCheckpoint({ id: idOf(cursor) }))
  }

  /** Channels the reader did not have before are whole from its cursor on; what was before that, it has to load. */
  function announceAdded(id: string, names: readonly string[]): Uint8Array {
    const sync = { reason: 'added' as const, channels: names, requested: id, oldest: null, latest: id }
    return Buffer.from(encodeSyncRequired(sync, { id }))
  }

  /** The only thing that moves a cursor over a gap (§4.6), and never back. */
  async function announceGap(
    reason: GapReason,
    lost: readonly string[],
    from: string,
    wholeAfter: Position,
  ): Promise<void> {
    if (!greeted) push(shareBytes([hello({ resumed: false })]))
    replayed = undefined
    observers.tell('gap', { ...facts, channels: lost, reason, requested: from })
    const taken = await context.snapshots.take(channels, latest(cursor, wholeAfter))
    const windows = await context.log.windows(channels)
    if (mode !== 'replaying') return
    // A snapshot that took longer than the window reaches back is of no use: what follows it is gone as well.
    const outlived = windows.some((window) => isAfter(window.trimmedThrough, taken.position))
    const useful = !outlived || live.hot.covers(channels, taken.position)
    const { position, state } = useful ? taken : { position: live.head, state: {} }
    cursor = position
    unmarked = 0
    const id = idOf(position)
    const sync = { reason, channels: lost, requested: from, oldest: oldestOf(windows), latest: id, ...state }
    push(shareBytes([Buffer.from(encodeSyncRequired(sync, { id }))]))
  }

  function oldestOf(windows: readonly Window[]): string | null {
    const oldest = windows.flatMap((window) => window.oldest ?? []).sort(comparePositions)[0]
    return oldest ? idOf(oldest) : null
  }

  function reportReplay(): void {
    if (replayed === undefined || shown === null) return
    const elapsedMs = environment.now() - startedAt
    observers.tell('replay', { ...facts, requested: shown, replayed, elapsedMs })
    replayed = undefined
  }

  function hello({ resumed, id }: { resumed: boolean; id?: string }): Uint8Array {
    greeted = true
    stopJudging()
    const greeting = { resumed, requested: shown, heartbeatMs: context.heartbeatMs, connection }
    return Buffer.from(encodeHello(greeting, { retryMs: context.retry.forOne(), ...(id ? { id } : {}) }))
  }

  function push(bytes: SharedBytes): boolean {
    if (mode === 'ended') return true
    try {
      if (sink.write(bytes)) return !full
    } catch (cause) {
      // A sink that throws costs its own reader, and nobody else whose turn it is.
      finish('failed', cause)
      sink.destroy()
      return true
    }
    full = true
    context.stalls.watch(stalled)
    return false
  }

  const stalled: Stalled = {
    get pending() {
      return sink.pending
    },
    giveUp() {
      if (mode !== 'ended') {
        observers.tell('stall', { ...facts, pending: sink.pending })
        finish('stalled')
      }
      sink.destroy()
    },
  }

  function finish(reason: string, cause?: unknown): void {
    if (mode === 'ended') return
    if (mode === 'live') live.leave(session)
    mode = 'ended'
    stopJudging()
    // One that was turned away at the door was never here.
    if (started) observers.tell('close', { ...facts, reason, durationMs: environment.now() - startedAt, cause })
    context.onEnd(session)
  }

  function end(reason: CloseReason, { retryMs = context.retry.forOne(), cause }: EndOptions = {}): void {
    if (mode === 'ended') return
    if (full) {
      // It does not read: the farewell would wait behind the rest, and both would hold the socket.
      finish(reason, cause)
      sink.destroy()
      return
    }
    push(shareBytes([Buffer.from(encodeClose({ reason }, { retryMs }))]))
    // The farewell itself may have ended it.
    if (session.mode === 'ended') return
    sink.end()
    finish(reason, cause)
    if (sink.pending > 0) context.stalls.watch(stalled)
  }

  const session: Session = {
    connection,
    reader,
    subscription,
    get mode() {
      return mode
    },
    get full() {
      return full
    },
    start,
    push,
    drained() {
      full = false
      context.stalls.unwatch(stalled)
      wake()
    },
    disconnected() {
      context.stalls.unwatch(stalled)
      finish('disconnected')
    },
    leaveLive(position) {
      cursor = position
      mode = 'replaying'
      wake()
    },
    end,
  }
  return session
}
