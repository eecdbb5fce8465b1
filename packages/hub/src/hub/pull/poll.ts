import type { Environment } from '../../environment.ts'
import type { ReaderRejection, SubscribeRequest } from '../hub.ts'
import type { Follower } from '../live/live.ts'
import type { HubObservations, Observers } from '../observation.ts'
import type { StreamFrame } from '../read/frame-reader.ts'
import type { Session } from '../read/session.ts'
import { onAbort } from './on-abort.ts'
import { createPollReaders, type PollReadersContext } from './poll-readers.ts'
import { createPollSink, type PollSink } from './poll-sink.ts'
import type { Unread } from './unread.ts'

export interface PollOptions {
  /**
   * How long to wait for something to say, in milliseconds, at most 60,000. Longer makes fewer requests; what happens
   * ends the wait either way. With 0 the answer comes as soon as the reader has what there is, as it does for one that
   * brings no cursor: lost on the way, a later answer would leave it without a position to come back to.
   * @defaultValue 25000
   */
  waitMs?: number
  /** Aborted when the reader has gone. */
  signal?: AbortSignal
  /**
   * What carries the answer: a socket, or a session of HTTP/2. The answers over one connection share a bound.
   * @defaultValue none: this answer is bounded by itself
   */
  connection?: object
}

/** A piece of a stream, as long as there was something to say and not too long. */
export interface PollAnswer {
  /** The frames of the stream in order, those of the protocol included. */
  readonly events: readonly StreamFrame[]
  /** Where the next poll goes on; null when there is no position to come back to. */
  readonly cursor: string | null
  /** What to wait before the next poll when this one was closed, or failed. */
  readonly retryMs: number
}

export interface Polls {
  poll(request: SubscribeRequest, options?: PollOptions): Promise<PollAnswer | ReaderRejection>
  close(): void
}

export interface PollContext extends PollReadersContext {
  readonly environment: Environment
  /** Resolves when what the log holds now has come to the readers here. */
  reachHead(): Promise<void>
  /** Brings a live reader up to the head and writes it that position. */
  mark(reader: Follower): void
  readonly observers: Observers
  readonly unread: Pick<Unread, 'room' | 'add'>
  /** Counts somebody who is new, and says why there is no room for them. */
  rejectionOf(request: SubscribeRequest): ReaderRejection | undefined
  /** The rejection of a poll for whose answer there is no memory, told to those who observe. */
  rejectAnswer(request: SubscribeRequest): ReaderRejection
  nameConnection(): string
  /** Connects a session whose reader is counted, and told of, elsewhere. */
  attach(request: SubscribeRequest, sink: PollSink, connection: string, observers: Observers): Session
}

const longestWaitMs = 60_000
// As long as a stream waits for the log before it sends its reader away (§3.2).
const headTimeoutMs = 10_000
// A reader that found nothing and did not even wait for it has to wait by the limits of those who reconnect.
const idlePollMs = 1000

/**
 * A poll is a stream that ends as soon as it has something to say: a session like any other, with the same verdicts,
 * replay and rights, whose sink is an answer.
 */
export function createPolls(context: PollContext): Polls {
  const { environment, observers } = context
  const readers = createPollReaders(context)

  /** Resolves when there is something to answer, or nothing up to the head of the log. */
  async function collect(session: Session, sink: PollSink, waitMs: number, signal?: AbortSignal): Promise<void> {
    const isOver = () => sink.ended || sink.full || sink.refused || signal?.aborted === true
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
      // A session that lost its position meanwhile has something to announce first.
    } while (!isOver() && session.mode !== 'live')
    cancelWait()
    stopListening()
    // The position it has reached without an event, or the next poll would search the same stretch again.
    if (!isOver() && !sink.hasNews) context.mark(session)
  }

  /** Another hub's event may be in the log and not here yet. "Nothing" would then be wrong, if only by a moment. */
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
          // That it came, and what it missed, was told when it came.
          else if (!known || (kind !== 'connect' && kind !== 'replay')) observers.tell(kind, observation)
        },
      }
      const sink = createPollSink({
        room: () => context.unread.room(connection),
        onGrown: (bytes) => context.unread.add(bytes, connection),
      })
      const session = context.attach(request, sink, reader.connection, told)
      const { start } = request
      const longest = start.from === 'cursor' ? longestWaitMs : 0
      await collect(session, sink, Math.min(Math.max(waitMs, 0), longest), signal)

      const isOver = session.mode === 'ended' || signal?.aborted === true
      session.disconnected()
      // Its adapter counts the answer from here on, within this turn. Let go of now, the room would be given away twice.
      environment.endOfTurn(() => context.unread.add(-sink.bytes, connection))
      if (sink.refused) {
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
