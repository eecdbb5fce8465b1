import type { Environment } from '../../environment.ts'
import type { Account } from '../byte-ledger.ts'
import type { MovableReader } from '../live/live.ts'
import type { HubObservations, Observers } from '../observation.ts'
import type { StreamFrame } from '../read/frame-reader.ts'
import type { Session } from '../read/session.ts'
import type { ReaderRejection, SubscribeRequest } from '../readers/subscribe-request.ts'
import { onAbort } from './on-abort.ts'
import { createPollReaders, type PollReadersContext } from './poll-readers.ts'
import { createPollSink, type PollSink } from './poll-sink.ts'

export interface PollOptions {
  /**
   * How long to wait for the next event, in milliseconds, at most 60,000. An event ends the wait, so a longer wait only means
   * fewer requests. With 0 the answer comes at once. So does the answer to a reader without a cursor: if the answer to a long
   * wait got lost, that reader would have no position to return to.
   * @defaultValue 25000
   */
  waitMs?: number | undefined
  /** Abort it when the reader has gone. */
  signal?: AbortSignal | undefined
  /**
   * The socket, or the session of HTTP/2, that carries the answer. The answers over one connection share a limit.
   * @defaultValue none: this answer is bounded by itself
   */
  connection?: object | undefined
}

/** A piece of a stream. */
export interface PollAnswer {
  /** The frames of the stream in order, the frames of the protocol included. */
  readonly events: readonly StreamFrame[]
  /** The cursor for the next poll; null when the reader has no position yet. */
  readonly cursor: string | null
  /** How long to wait before the next poll when this one was closed or failed. */
  readonly retryMs: number
}

export interface Polls {
  poll(request: SubscribeRequest, options?: PollOptions): Promise<PollAnswer | ReaderRejection>
  close(): void
}

export interface PollContext extends PollReadersContext {
  readonly environment: Environment
  /** Resolves when the readers here have everything that the log holds now. */
  reachHead(): Promise<void>
  /** Brings a live reader up to the head and writes the id of that position. */
  mark(reader: MovableReader): void
  readonly observers: Observers
  readonly answers: Account
  /** Counts the attempt of a new reader. Returns why the reader is rejected, if so. */
  rejectionOf(request: SubscribeRequest): ReaderRejection | undefined
  /** Rejects a poll because there is no memory for its answer, and tells the observers. */
  rejectAnswer(request: SubscribeRequest): ReaderRejection
  nameConnection(): string
  /** Connects a session for a reader that is counted elsewhere. */
  attach(request: SubscribeRequest, sink: PollSink, connection: string, observers: Observers): Session
}

const longestWaitMs = 60_000
// A stream waits as long for the log before it closes (§3.2).
const headTimeoutMs = 10_000
// A poll that waited for less and found nothing counts as a reconnect, so that a reader cannot poll in a tight loop.
const idlePollMs = 1000

/**
 * A poll is a stream that ends with the first news: a session like any other, with the same verdicts, replay and rights. Its sink
 * is an answer.
 */
export function createPolls(context: PollContext): Polls {
  const { environment, observers } = context
  const readers = createPollReaders(context)

  /** Resolves when the answer has news, or when the wait is over and the log has nothing more. */
  async function collect(session: Session, sink: PollSink, waitMs: number, signal?: AbortSignal): Promise<void> {
    const isOver = () => sink.ended || sink.full || sink.rejected || signal?.aborted === true
    let late = waitMs === 0
    const cancelWait = environment.after(waitMs, () => {
      late = true
      sink.checkCondition()
    })
    const stopListening = onAbort(signal, sink.checkCondition)
    do {
      await sink.when(() => isOver() || (session.mode === 'live' && (late || sink.hasNews)))
      if (!isOver() && !sink.hasNews)
        await Promise.race([reachHead(session), sink.when(() => isOver() || sink.hasNews)])
      // A session that is not live any more has lost its position, and has a gap to announce first.
    } while (!isOver() && session.mode !== 'live')
    cancelWait()
    stopListening()
    // Gives the reader the id of the head. Otherwise its next poll would search the same events again.
    if (!isOver() && !sink.hasNews) context.mark(session)
  }

  /** Before an empty answer: the log may have an event of another hub that the tail has yet to bring. */
  async function reachHead(session: Session): Promise<void> {
    const cancel = environment.after(headTimeoutMs, () => session.end('log-unavailable'))
    try {
      await context.reachHead()
    } catch (cause) {
      session.end('log-unavailable', { cause })
    }
    cancel()
  }

  return {
    close: readers.close,
    async poll(request, { waitMs = 25_000, signal, connection } = {}) {
      const since = environment.now()
      const known = readers.goOn(request)
      const rejection = known ? undefined : context.rejectionOf(request)
      if (rejection) return rejection
      const reader = known ?? readers.enter(context.nameConnection(), request)
      let closing: HubObservations['close'] | undefined
      const told: Observers = {
        ...observers,
        tell(kind, observation) {
          if (kind === 'close') closing = observation as HubObservations['close']
          // `connect` and `replay` were told at the reader's first poll.
          else if (!known || (kind !== 'connect' && kind !== 'replay')) observers.tell(kind, observation)
        },
      }
      const held = context.answers.open(undefined, connection)
      const sink = createPollSink({
        room: () => roomFor(context.answers, connection),
        onGrown: (bytes) => held.add(bytes),
      })
      const session = context.attach(request, sink, reader.connection, told)
      const { start } = request
      const longest = start.from === 'cursor' ? longestWaitMs : 0
      await collect(session, sink, Math.min(Math.max(waitMs, 0), longest), signal)

      const isOver = session.mode === 'ended' || signal?.aborted === true
      session.disconnected()
      // The adapter counts the answer from this turn on. If its room were free before the end of the turn, it would be given
      // twice.
      environment.endOfTurn(() => held.close())
      if (sink.rejected) {
        readers.leave(reader, 'overloaded')
        return context.rejectAnswer(request)
      }
      const cursor = sink.frames.at(-1)?.id ?? (start.from === 'cursor' ? start.cursor : null)
      const inGoodTime = !known || sink.hasNews || environment.now() - since >= idlePollMs
      if (!isOver && inGoodTime && cursor !== null) readers.expect(reader, request, cursor)
      else readers.leave(reader, closing?.reason ?? 'disconnected', closing?.cause)
      return { events: sink.frames, cursor, retryMs: sink.retryMs }
    },
  }
}

/** How long an answer over this connection may become now, in bytes; 0 when there is no room for any event. */
function roomFor(answers: Account, connection: object | undefined): number {
  const own = maxConnectionBytes - (connection ? answers.heldBy(connection) : 0)
  return Math.max(0, Math.min(maxAnswerBytes, answers.free() / shares, own / connectionShares))
}

// The next poll gets the rest. An answer of this size also comes through over a bad connection.
const maxAnswerBytes = 1024 * 1024
// A browser holds a few polls over one connection of HTTP/2. Four long answers keep any connection busy.
const maxConnectionBytes = 4 * maxAnswerBytes
// An answer takes at most an eighth of the free bytes, and half of the free bytes of its connection. So no answer takes all.
const shares = 8
const connectionShares = 2
