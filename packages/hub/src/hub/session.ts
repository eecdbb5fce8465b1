import {
  type CloseReason,
  encodeCheckpoint,
  encodeClose,
  encodeHello,
  encodeSyncRequired,
  type GapReason,
  isAfter,
  origin,
  type Position,
} from '@rejoin/protocol'
import type { Environment } from '../environment.ts'
import type { Gap, Log } from '../log/contract.ts'
import { mergeInOrder } from '../log/in-order.ts'
import { type Block, type Blocks, framesAfter } from './blocks.ts'
import type { CatchUpQueue } from './catch-up.ts'
import type { Frame } from './frame.ts'
import type { Follower, Live } from './live.ts'
import type { Observers, ReaderFacts } from './observation.ts'
import type { Opening, Start } from './opening.ts'
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
  /** Ends the stream with a reasoned `close`; the reader is told to be back after `retryMs`. */
  end(reason: CloseReason, options?: { retryMs?: number; cause?: unknown }): void
}

export interface SessionContext {
  readonly log: Pick<Log, 'windows'>
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
  /** Whether the reader's rights still hold; ends the session when they do not. */
  stillAllowed(session: Session): Promise<boolean>
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
  const facts = { connection, channels, ...reader }
  const startedAt = environment.now()

  let mode: Session['mode'] = 'replaying'
  let full = false
  let busy = false
  let greeted = false
  /** Everything of the subscription up to here has been handed to the sink. Only kept up while not live. */
  let cursor: Position = origin
  /** Events passed over since an id was written. */
  let unmarked = 0
  /** Set while a return has to be reported: events handed out since the reader came back. */
  let replayed: number | undefined

  function start(): void {
    if (mode === 'ended') return
    observers.tell('connect', { ...facts, requested, resuming: requested !== null })
    if (request.start.from === 'now') {
      cursor = live.head
      greet({ resumed: false, id: idOf(cursor) })
      wake()
    } else {
      busy = true
      void open().then(release, fail)
    }
  }

  async function open(): Promise<void> {
    const cancel = environment.after(judgeTimeoutMs, () => !greeted && end('log-unavailable'))
    const opening = await context.findOpening(subscription, request.start).finally(cancel)
    if (mode === 'ended') return
    if (!opening.ok) {
      await announceGap(opening.reason, opening.channels, requested as string)
      return
    }
    cursor = opening.position
    if (requested !== null) {
      replayed = 0
      return
    }
    greet({ resumed: false, id: idOf(cursor) })
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

  /** One slice from the hot window; true when it was the last and the session is live. Synchronous to the end. */
  function catchUpFromMemory(): boolean {
    const slice = live.hot.slice(channels, cursor, sliceBytes)
    deliver(slice.frames, slice.cut ? (slice.frames.at(-1) as Frame).position : live.head)
    if (slice.cut || full || !live.join(session, cursor)) return false
    mode = 'live'
    reportReplay()
    return true
  }

  async function catchUpFromLog(): Promise<void> {
    if (!(await context.stillAllowed(session))) return
    const through = live.head
    const from = cursor
    const answers = await Promise.all(channels.map((channel) => context.blocks.read(channel, from, through)))
    if (mode !== 'replaying') return
    const gaps = answers.filter((answer): answer is Gap => 'channels' in answer)
    if (gaps.length > 0) {
      const reason = gaps.some((gap) => gap.reason === 'forced') ? 'forced' : 'expired'
      await announceGap(
        reason,
        gaps.flatMap((gap) => gap.channels),
        greeted ? idOf(from) : (requested as string),
      )
      release()
      return
    }
    context.catchUp.add(() => {
      deliverBlocks(answers as Block[], from)
      release()
    })
  }

  /** As much of the blocks as the sink takes. The rest is at hand when it has drained, or is read again. */
  function deliverBlocks(blocks: readonly Block[], from: Position): void {
    if (mode !== 'replaying') return
    const through = blocks.map((block) => block.through).reduce((a, b) => (isAfter(a, b) ? b : a))
    const frames = mergeInOrder(
      blocks.map((block) => framesAfter(block, from, through)),
      Number.POSITIVE_INFINITY,
    )
    for (const { slice, last } of slicesOf(frames, sliceBytes)) {
      if (full) return
      deliver(slice, last ? through : (slice.at(-1) as Frame).position)
    }
  }

  function deliver(frames: readonly Frame[], through: Position): void {
    const wanted = frames.filter((frame) => wants(subscription, frame))
    const parts = wanted.map((frame) => frame.bytes)
    cursor = through
    if (replayed !== undefined) replayed += wanted.length
    unmarked = wanted.length > 0 ? 0 : unmarked + frames.length
    if (!greeted) {
      parts.unshift(hello({ resumed: true, id: requested as string }))
      if (request.start.from === 'cursor' && request.start.added?.length) parts.splice(1, 0, added(request.start.added))
    }
    if (unmarked > maxUnmarked) {
      unmarked = 0
      parts.push(Buffer.from(encodeCheckpoint({ id: idOf(cursor) })))
    }
    if (parts.length > 0) push(shareBytes(parts))
  }

  /** Channels the reader did not have before are whole from its cursor on; what was before that, it has to load. */
  function added(names: readonly string[]): Uint8Array {
    const id = requested as string
    const sync = { reason: 'added' as const, channels: names, requested: id, oldest: null, latest: id }
    return Buffer.from(encodeSyncRequired(sync, { id }))
  }

  /** The only thing that moves a cursor over a gap (§4.6). */
  async function announceGap(reason: GapReason, lost: readonly string[], from: string): Promise<void> {
    if (!greeted) greet({ resumed: false })
    replayed = undefined
    observers.tell('gap', { ...facts, channels: lost, reason, requested: from })
    const [{ position, state }, oldest] = await Promise.all([context.snapshots.take(channels), oldestHeld()])
    if (mode !== 'replaying') return
    cursor = position
    const id = idOf(position)
    const sync = { reason, channels: lost, requested: from.slice(0, maxEcho), oldest, latest: id, ...state }
    push(shareBytes([Buffer.from(encodeSyncRequired(sync, { id }))]))
  }

  async function oldestHeld(): Promise<string | null> {
    const windows = await context.log.windows(channels)
    const oldest = windows.flatMap((window) => window.oldest ?? []).sort((a, b) => (isAfter(a, b) ? 1 : -1))[0]
    return oldest ? idOf(oldest) : null
  }

  function reportReplay(): void {
    if (replayed === undefined || requested === null) return
    const elapsedMs = environment.now() - startedAt
    observers.tell('replay', { ...facts, requested, replayed, elapsedMs })
    replayed = undefined
  }

  function greet(greeting: { resumed: boolean; id?: string }): void {
    push(shareBytes([hello(greeting)]))
  }

  function hello({ resumed, id }: { resumed: boolean; id?: string }): Uint8Array {
    greeted = true
    const seen = requested === null ? null : requested.slice(0, maxEcho)
    const greeting = { resumed, requested: seen, heartbeatMs: context.heartbeatMs, connection }
    return Buffer.from(encodeHello(greeting, { retryMs: context.retry.forOne(), ...(id ? { id } : {}) }))
  }

  function push(bytes: SharedBytes): boolean {
    if (mode === 'ended') return true
    if (!sink.write(bytes)) {
      full = true
      context.stalls.watch(stalled)
    }
    return !full
  }

  const stalled: Stalled = {
    get pending() {
      return sink.pending
    },
    giveUp() {
      observers.tell('stall', { ...facts, pending: sink.pending })
      finish('stalled')
      sink.destroy()
    },
  }

  function finish(reason: string, cause?: unknown): void {
    if (mode === 'live') live.leave(session)
    mode = 'ended'
    context.stalls.unwatch(stalled)
    observers.tell('close', { ...facts, reason, durationMs: environment.now() - startedAt, cause })
    context.onEnd(session)
  }

  function end(
    reason: CloseReason,
    { retryMs = context.retry.forOne(), cause }: { retryMs?: number; cause?: unknown } = {},
  ) {
    if (mode === 'ended') return
    sink.write(shareBytes([Buffer.from(encodeClose({ reason }, { retryMs }))]))
    sink.end()
    finish(reason, cause)
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
      if (mode !== 'ended') finish('disconnected')
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

/** Runs of frames of about `maxBytes` each; always at least one run, which may be empty. */
function* slicesOf(frames: readonly Frame[], maxBytes: number): Generator<{ slice: Frame[]; last: boolean }> {
  let slice: Frame[] = []
  let bytes = 0
  for (const frame of frames) {
    if (bytes >= maxBytes) {
      yield { slice, last: false }
      slice = []
      bytes = 0
    }
    slice.push(frame)
    bytes += frame.bytes.length
  }
  yield { slice, last: true }
}
