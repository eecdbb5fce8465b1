import { encodeHello, encodeSyncRequired, isPattern } from '@rejoin/protocol'
import type { Cancel } from '../../environment.ts'
import type { Gap } from '../../log/contract.ts'
import type { Frame } from '../live/frame.ts'
import type { FoundOpening, Start } from './opening.ts'
import type { Session, SessionContext } from './session.ts'
import { reportGap } from './session-report.ts'
import { maxWaitMs } from './tail-wait.ts'

// A cursor may be as long as a header. `hello` and the observers show its first 128 characters (§4.4).
const maxEcho = 128
// How often a session searches for the last few events again, because they were trimmed before it could read them.
const maxSearches = 3

/**
 * The frames that a stream begins with: what the reader asked for, what the log has of it, and `hello`. The session lets go of
 * its greeting once it is written, so that an idle reader keeps none of this in memory.
 */
export class Greeting {
  /** Where the reader asked to start. */
  readonly start: Start
  /** How many events of `replay=N` follow; undefined for a reader that did not ask. */
  #replay: number | undefined
  /** Which channels lost a part of the past that the reader asked for, and why. */
  #lost: FoundOpening['lost']
  /** Where the stream would have started before that part was lost. */
  #lostFrom: string | undefined
  #searches = 0
  #stopTimer: Cancel = nothing

  constructor(start: Start) {
    this.start = start
  }

  /** The cursor of the reader, cut short for frames and logs; null for a reader without a cursor. */
  get shownCursor(): string | null {
    return this.start.from === 'cursor' ? this.start.cursor.slice(0, maxEcho) : null
  }

  /** What `sync-required` names as requested; undefined for a reader of the last few events, which named no position. */
  get requested(): string | undefined {
    return this.shownCursor ?? (this.start.from === 'last' ? undefined : 'earliest')
  }

  /** Closes the stream when it was not greeted in time. The reader keeps its cursor, and another hub may know more. */
  startTimer({ environment }: SessionContext, session: Session): void {
    this.#stopTimer = environment.after(maxWaitMs, () => session.end('log-unavailable'))
  }

  stopTimer(): void {
    this.#stopTimer()
  }

  /** The stream starts here. */
  open({ replay, lost }: FoundOpening): void {
    this.#replay = replay
    this.#lost = lost
  }

  /** Whether to search again for the last few events. A busy channel may be trimmed each time, so the searches are counted. */
  searchAgain(): boolean {
    this.#searches += 1
    return this.start.from === 'last' && this.#searches <= maxSearches
  }

  /**
   * The stream has to start later: its past was trimmed before the session could read it.
   * @param from - the id where the stream would have started
   */
  startLater({ reason, channels }: Gap, from: string): void {
    this.#lost = { reason, channels }
    this.#lostFrom ??= from
  }

  /**
   * @param id - the id of the position where the stream starts
   * @param first - the first event behind that position
   */
  frames(context: SessionContext, session: Session, id: string, first: Frame | undefined): string {
    if (this.#lost) return this.#framesOfLoss(context, session, this.#lost, { id, first })
    if (this.start.from !== 'cursor') {
      return this.hello(context, session, { resumed: false, id, replay: this.#replay })
    }
    const { cursor, added = [] } = this.start
    const hello = this.hello(context, session, { resumed: true, id: cursor, replay: undefined })
    return added.length > 0 ? hello + addedFrame(cursor, added) : hello
  }

  /** The reader asked for a past of which the beginning is gone. The gap is announced first, and the rest follows (§3.4). */
  #framesOfLoss(
    context: SessionContext,
    session: Session,
    { reason, channels }: Pick<Gap, 'reason' | 'channels'>,
    { id, first }: { readonly id: string; readonly first: Frame | undefined },
  ): string {
    const { observers, pointAt, idAt } = context
    const requested = this.#lostFrom ?? this.requested ?? id
    const hasPattern = session.subscription.selectors.some(isPattern)
    const oldest = first && !hasPattern ? idAt(pointAt(first.position)) : null
    reportGap(observers, session, channels, { reason, requested, absenceMs: null, resuming: false, replayed: 0 })
    const sync = encodeSyncRequired({ reason, channels, requested, oldest, latest: id }, { id })
    return this.hello(context, session, { resumed: false, id: undefined, replay: this.#replay }) + sync
  }

  /** The frame `hello` (§4.4). It carries no id where a gap is announced next, because that announcement carries one. */
  hello(context: SessionContext, session: Session, { resumed, id, replay }: Hello): string {
    this.#stopTimer()
    const { heartbeatMs, retry, presence, environment } = context
    const { connection, subscription } = session
    // A proxy can lose the word `earliest` on the way, like a cursor. The client sees here what arrived.
    const requested = this.start.from === 'earliest' ? 'earliest' : this.shownCursor
    const expiresAt = presence.expiresAt(session)
    // Told in advance, so that a client can return with new rights before the old ones expire.
    const expiresInMs = expiresAt === undefined ? undefined : Math.max(0, Math.floor(expiresAt - environment.now()))
    const hello = { resumed, requested, heartbeatMs, connection, replay, expiresInMs }
    return encodeHello(hello, { retryMs: retry.forOne(subscription.selectors), id })
  }
}

interface Hello {
  /** Whether everything after the reader's cursor follows. */
  readonly resumed: boolean
  readonly id: string | undefined
  readonly replay: number | undefined
}

/** The reader did not have these channels before. It gets all of their events after its cursor, and has to load the rest. */
function addedFrame(cursor: string, channels: readonly string[]): string {
  const added = { reason: 'added' as const, channels, requested: cursor, oldest: null, latest: cursor }
  return encodeSyncRequired(added, { id: cursor })
}

const nothing = () => undefined
