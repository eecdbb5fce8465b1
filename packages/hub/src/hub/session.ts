import {
  type CloseReason,
  encodeClose,
  encodeHello,
  encodeSyncRequired,
  type GapReason,
  isAfter,
  judgeCursor,
  origin,
  type Position,
  renderId,
} from '@rejoin/protocol'
import type { Environment } from '../environment.ts'
import type { Log, LogEvent } from '../log/contract.ts'
import { encodeFrame, type Frame } from './frame.ts'
import type { Follower, Live } from './live.ts'
import type { Observers } from './observation.ts'
import { type SharedBytes, type Sink, shareBytes } from './sink.ts'
import { type SnapshotHook, takeSnapshot } from './snapshot.ts'
import { type Subscription, wants } from './subscription.ts'

/** One connected reader: a subscription, a place in the log, and a sink. */
export interface Session extends Follower {
  readonly connection: string
  /** `replaying` reads from the hot window or the log, `live` is pushed to, `ended` gets nothing more. */
  readonly mode: 'replaying' | 'live' | 'ended'
  /** Whether a write would be welcome. */
  readonly full: boolean
  start(): void
  /** Told by the adapter: the sink was full and has emptied. */
  drained(): void
  /** Told by the adapter: the reader has gone. */
  disconnected(): void
  /** Bytes outside the order of events: heartbeats. */
  push(bytes: SharedBytes): boolean
  end(reason: CloseReason): void
}

export interface SessionContext {
  readonly log: Log
  readonly live: Live
  readonly environment: Environment
  readonly observers: Observers
  readonly heartbeatMs: number
  readonly retryMs: number
  readonly snapshot: SnapshotHook | undefined
  readonly snapshotTimeoutMs: number
  onEnd(session: Session): void
}

// One reader's share of a turn while it catches up, and the size of one read of the log.
const sliceBytes = 64 * 1024
const pageEvents = 256
// Of a longer value, the first 128 characters show in `hello` which nonsense arrived (§4.4).
const maxEcho = 128

export function createSession(
  context: SessionContext,
  subscription: Subscription,
  requested: string | null,
  sink: Sink,
): Session {
  const { log, live, environment, observers } = context
  const { channels } = subscription
  const connection = `c_${Math.floor(environment.random() * 0x1000000)
    .toString(16)
    .padStart(6, '0')}`
  const startedAt = environment.now()

  let mode: Session['mode'] = 'replaying'
  let full = false
  let busy = false
  let greeted = false
  /** Everything of the subscription up to here has been handed to the sink. Only kept up while not live. */
  let cursor: Position = origin
  /** Set while a return has to be reported: events handed out since the reader came back. */
  let replayed: number | undefined

  function start(): void {
    observers.tell('connect', { connection, channels, requested })
    if (requested !== null) {
      void run(() => resume(requested))
      return
    }
    cursor = live.head
    greet({ resumed: false, id: idOf(cursor) })
    void run(catchUp)
  }

  async function resume(text: string): Promise<void> {
    let verdict = judgeCursor(text, { formats: log.formats, history: log.history, head: live.head })
    if (!verdict.ok && verdict.reason === 'ahead') {
      // Ahead of this node may only mean that our tail is behind: the log itself knows.
      verdict = judgeCursor(text, { formats: log.formats, history: log.history, head: await log.head() })
      if (verdict.ok) await live.reached(verdict.position)
    }
    if (mode === 'ended') return
    if (!verdict.ok) {
      await announceGap(verdict.reason, channels, text)
    } else {
      cursor = verdict.position
      replayed = 0
    }
    await catchUp()
  }

  /** Reads on until the sink is full, or there is nothing left to read and the session is live. */
  async function catchUp(): Promise<void> {
    while (mode === 'replaying' && !full) {
      if (live.hot.covers(channels, cursor)) {
        if (catchUpFromMemory()) return
        await turnEnd()
      } else {
        await catchUpFromLog()
      }
    }
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
    const from = cursor
    const page = await log.read(channels, from, live.head, pageEvents)
    if (mode !== 'replaying') return
    const lost = page.gap?.channels ?? brokenLinks(page.events, from)
    if (lost.length > 0) {
      await announceGap('expired', lost, greeted ? idOf(from) : (requested as string))
      return
    }
    const frames = page.events.map((event) => encodeFrame(event, idOf(event.position)))
    for (const { slice, last } of slicesOf(frames, sliceBytes)) {
      // What does not fit is read again when the sink has drained: a page is never held for a slow reader.
      if (full) return
      deliver(slice, last ? page.completeThrough : (slice.at(-1) as Frame).position)
    }
  }

  function deliver(frames: readonly Frame[], through: Position): void {
    const wanted = frames.filter((frame) => wants(subscription, frame))
    if (replayed !== undefined) replayed += wanted.length
    cursor = through
    const parts = wanted.map((frame) => frame.bytes)
    if (!greeted) parts.unshift(hello({ resumed: true, id: requested as string }))
    if (parts.length > 0) push(shareBytes(parts))
  }

  /** The only thing that moves a cursor over a gap (§4.6). */
  async function announceGap(reason: GapReason, lost: readonly string[], from: string): Promise<void> {
    if (!greeted) greet({ resumed: false })
    replayed = undefined
    observers.tell('gap', { connection, channels: lost, reason, requested: from })
    // The position comes first: events that fall between it and the snapshot are sent again, the other way round they
    // would be in neither.
    const position = live.head
    const [snapshot, oldest] = await Promise.all([
      takeSnapshot(context.snapshot, channels, context.snapshotTimeoutMs, environment),
      oldestHeld(),
    ])
    if (mode !== 'replaying') return
    cursor = position
    const id = idOf(position)
    const requested = from.slice(0, maxEcho)
    const sync = { reason, channels: lost, requested, oldest, latest: id, ...snapshot }
    push(shareBytes([Buffer.from(encodeSyncRequired(sync, { id }))]))
  }

  async function oldestHeld(): Promise<string | null> {
    const windows = await log.windows(channels)
    const oldest = windows.flatMap((window) => window.oldest ?? []).sort((a, b) => (isAfter(a, b) ? 1 : -1))[0]
    return oldest ? idOf(oldest) : null
  }

  function reportReplay(): void {
    if (replayed === undefined || requested === null) return
    const elapsedMs = environment.now() - startedAt
    observers.tell('replay', { connection, channels, requested, replayed, elapsedMs })
    replayed = undefined
  }

  function greet(greeting: { resumed: boolean; id?: string }): void {
    push(shareBytes([hello(greeting)]))
  }

  function hello({ resumed, id }: { resumed: boolean; id?: string }): Uint8Array {
    greeted = true
    const { heartbeatMs, retryMs } = context
    const seen = requested === null ? null : requested.slice(0, maxEcho)
    const text = encodeHello({ resumed, requested: seen, heartbeatMs, connection }, { retryMs, ...(id ? { id } : {}) })
    return Buffer.from(text)
  }

  function push(bytes: SharedBytes): boolean {
    if (mode === 'ended') return true
    if (!sink.write(bytes)) full = true
    return !full
  }

  function idOf(position: Position): string {
    return renderId(position, { formats: log.formats, history: log.history })
  }

  function turnEnd(): Promise<void> {
    return new Promise((resolve) => environment.endOfTurn(resolve))
  }

  /** One walk at a time: a drain that comes while a read is under way must not start a second one. */
  async function run(walk: () => Promise<void>): Promise<void> {
    if (busy) return
    busy = true
    try {
      await walk()
    } catch (error) {
      // The log cannot be read now. The cursor stays the reader's own, who is asked to come back with it.
      end('log-unavailable', error)
    } finally {
      busy = false
    }
    if (mode === 'replaying' && !full) void run(catchUp)
  }

  function finish(reason: string, cause?: unknown): void {
    if (mode === 'live') live.leave(session)
    mode = 'ended'
    observers.tell('close', { connection, channels, reason, durationMs: environment.now() - startedAt, cause })
    context.onEnd(session)
  }

  function end(reason: CloseReason, cause?: unknown): void {
    if (mode === 'ended') return
    sink.write(shareBytes([Buffer.from(encodeClose({ reason }, { retryMs: context.retryMs }))]))
    sink.end()
    finish(reason, cause)
  }

  const session: Session = {
    connection,
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
      if (mode === 'replaying') void run(catchUp)
    },
    disconnected() {
      if (mode !== 'ended') finish('disconnected')
    },
    leaveLive(position) {
      cursor = position
      mode = 'replaying'
      if (!full) void run(catchUp)
    },
    end,
  }
  return session
}

/**
 * Channels whose first event here follows one that is neither here nor behind the cursor. A log reports its own trims;
 * this sees what was taken from under it, by an operator or an eviction.
 */
function brokenLinks(events: readonly LogEvent[], after: Position): string[] {
  const known = new Map<string, Position>()
  const broken = new Set<string>()
  for (const event of events) {
    if (isAfter(event.previous, known.get(event.channel) ?? after)) broken.add(event.channel)
    known.set(event.channel, event.position)
  }
  return [...broken]
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
