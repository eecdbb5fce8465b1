import type { Environment } from '../../environment.ts'
import type { Stalled, StallWatch } from '../readers/stall.ts'

/**
 * The answers that the hub holds in memory until their readers have taken them; those of polls from their first event on. Streams
 * do not need this, because a session stops writing when its sink is full. A poll collects a whole answer. Without a limit, a few
 * thousand polls that nobody reads would fill the memory.
 */
export interface Unread {
  /** Bytes of all answers that are being collected or are on their way. */
  readonly bytes: number
  /**
   * How long an answer over this connection may become now, in bytes; 0 when there is no room for any event. To make room,
   * answers that their readers have not taken for a second or more are given up.
   */
  room(connection?: object): number
  /** An answer that is being collected has grown by this many bytes. A negative number lets go of bytes. */
  add(bytes: number, connection?: object): void
  /**
   * Told by adapters: an answer is on its way. It is given up when its reader takes nothing of it for `stallTimeoutMs`, or when
   * other answers need the room. Returns a function to call when the answer has been taken, or its reader has gone.
   */
  watch(answer: UnreadAnswer): () => void
}

export interface UnreadAnswer extends Stalled {
  /** The socket, or the session of HTTP/2, that carries the answer. */
  readonly connection: object
}

export interface UnreadOptions {
  /** Bytes of all answers together. */
  readonly maxBytes: number
  readonly environment: Environment
  readonly stalls: StallWatch
  /** An answer was given up. */
  onGivenUp(pending: number): void
}

// The next poll gets the rest. An answer of this size also comes through over a bad connection.
const maxAnswerBytes = 1024 * 1024
// A browser holds a few polls over one connection of HTTP/2. Four long answers keep any connection busy.
const maxConnectionBytes = 4 * maxAnswerBytes
// An answer takes at most an eighth of the free bytes, and half of the free bytes of its connection. So no answer takes all.
const shares = 8
const connectionShares = 2
// A reader has this long to take an answer before the answer may be given up for others.
const patienceMs = 1000

export function createUnread({ maxBytes, environment, stalls, onGivenUp }: UnreadOptions): Unread {
  let bytes = 0
  const byConnection = new WeakMap<object, number>()
  /** Answers on their way, in the order in which they were sent. */
  const sent = new Map<UnreadAnswer, Sent>()

  function add(more: number, connection?: object): void {
    bytes += more
    if (connection) byConnection.set(connection, (byConnection.get(connection) ?? 0) + more)
  }

  function giveUpOldest(): void {
    for (const [answer, { isPatient, giveUp }] of sent) {
      if (bytes < maxBytes || isPatient) return
      giveUp(answer.pending)
    }
  }

  return {
    get bytes() {
      return bytes
    },
    room(connection) {
      if (bytes >= maxBytes) giveUpOldest()
      const own = maxConnectionBytes - ((connection && byConnection.get(connection)) ?? 0)
      return Math.max(0, Math.min(maxAnswerBytes, (maxBytes - bytes) / shares, own / connectionShares))
    },
    add,
    watch(answer) {
      const held = answer.pending
      add(held, answer.connection)
      if (bytes > maxBytes) giveUpOldest()
      const entry: Sent = {
        isPatient: true,
        giveUp(pending) {
          done()
          onGivenUp(pending)
          answer.giveUp()
        },
      }
      const cancel = environment.after(patienceMs, () => {
        entry.isPatient = false
      })
      const stalled = new StalledAnswer(answer, entry)
      function done(): void {
        if (!sent.delete(answer)) return
        cancel()
        stalls.unwatch(stalled)
        add(-held, answer.connection)
      }
      sent.set(answer, entry)
      stalls.watch(stalled)
      return done
    },
  }
}

interface Sent {
  /** Whether the reader still has time to take the answer. */
  isPatient: boolean
  giveUp(pending: number): void
}

/** A class, because an object literal with a getter would keep the answer in memory until the next full collection. */
class StalledAnswer implements Stalled {
  readonly #answer: UnreadAnswer
  readonly #sent: Sent

  constructor(answer: UnreadAnswer, sent: Sent) {
    this.#answer = answer
    this.#sent = sent
  }

  get pending(): number {
    return this.#answer.pending
  }

  giveUp(): void {
    this.#sent.giveUp(this.pending)
  }
}
