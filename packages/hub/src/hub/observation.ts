import type { GapReason, RejoinError } from '@rejoin/protocol'
import type { SmallWindow } from './sizing.ts'

/** Everything that a hub reports. The hub itself logs nothing: a program makes its lines and metrics from these. */
export interface HubObservations {
  /** A reader connected. `requested` is the cursor it brought, null for none. */
  connect: ReaderObservation & { requested: string | null; resuming: boolean }
  /**
   * A reader came back with a cursor that could be served and has caught up. `absenceMs` is the age of the first event it
   * had missed, null when it had missed none.
   */
  replay: ReaderObservation & { requested: string; replayed: number; elapsedMs: number; absenceMs: number | null }
  /**
   * A reader was told that something is gone; `channels` are those that lost it. `absenceMs` is the age of its cursor when
   * a larger window would have helped, else null. `resuming` when the reader had come back with a cursor and had not caught up:
   * its resume failed.
   */
  gap: ReaderObservation & { reason: GapReason; requested: string; absenceMs: number | null; resuming: boolean }
  /** Readers are away for longer than a channel's window bridges for certain. Told every ten minutes at most. */
  window: SmallWindow
  /** A reader read nothing for so long that it was given up, with this many bytes waiting for it. */
  stall: ReaderObservation & { pending: number }
  /** A poll's answer was given up with this many bytes waiting: its reader took nothing, or others needed the memory. */
  unread: { pending: number }
  /**
   * A stream ended: the reader left, or the hub ended it for `reason`, with the error that made it do so, if any. `unfinished`
   * when the reader had come back with a cursor and had not caught up.
   */
  close: ReaderObservation & {
    reason: string
    durationMs: number
    cause: unknown
    unfinished?: UnfinishedReplay | undefined
  }
  /**
   * A reader was rejected: by a limit, by the state of the hub, or with the code of an error, such as `unauthorized`. `status`
   * is that of its answer. With 200 it got a stream that ended at once. Also a publisher that lacks the right (`unauthorized`,
   * `forbidden`): `action` says what it wanted to do.
   */
  reject: RejectedReader
  /** While the log was away, an event was published to this hub's readers alone, with `whenDown: 'local'`. */
  local: { channel: string; type: string; id: string; bytes: number; subject: string | null }
  /** The log is back, and the channels that were served without it have been invalidated. */
  healed: { channels: readonly string[] }
  /**
   * The hub has heard nothing from its log for too long, or its log was damaged behind its back (`cause`). It sends its
   * readers elsewhere; or serves them without it (`local`), with `whenDown: 'local'`.
   */
  silence: { silentMs: number; cause?: RejoinError; local?: boolean }
  /** The program's own code, an `authorize` for one, failed while a request was answered. */
  error: { cause: unknown }
  /** `repeated`: nothing was appended, the publish was answered with the id of an earlier one under the same key. */
  publish: { channel: string; type: string; id: string; bytes: number; subject: string | null; repeated: boolean }
  /** A publish is over; a batch is one. `elapsedMs` has fractions. `error` is why it failed, undefined when it did not. */
  published: { elapsedMs: number; error: unknown }
}

/** A return that was cut off. */
export interface UnfinishedReplay {
  readonly requested: string
  /** Whether the cursor could be served; null when the reader left before that was known. */
  readonly found: true | null
  readonly replayed: number
}

export interface RejectedReader extends ReaderFacts {
  /** As they were asked for: they need not be names of channels. */
  readonly channels: readonly string[]
  readonly reason: string
  readonly status: number
  /** What was asked for; left out, to read. */
  readonly action?: 'publish' | 'end' | 'delete'
}

/** What the adapter knows about a reader. */
export interface ReaderFacts {
  readonly ip: string | null
  readonly userAgent: string | null
  readonly subject: string | null
}

export interface ReaderObservation extends ReaderFacts {
  readonly connection: string
  readonly channels: readonly string[]
}

export interface Observers {
  /** Calls `observe` for each observation of that kind until the returned function is called. */
  on<Kind extends keyof HubObservations>(kind: Kind, observe: (observation: HubObservations[Kind]) => void): () => void
  /** Whether anybody observes this kind. An observation that nobody gets need not be computed. */
  has(kind: keyof HubObservations): boolean
  tell<Kind extends keyof HubObservations>(kind: Kind, observation: HubObservations[Kind]): void
}

export function createObservers(): Observers {
  const observers = new Map<string, Set<(observation: never) => void>>()
  return {
    on(kind, observe) {
      const group = observers.get(kind) ?? new Set()
      observers.set(kind, group.add(observe))
      return () => void group.delete(observe)
    },
    has: (kind) => (observers.get(kind)?.size ?? 0) > 0,
    tell(kind, observation) {
      for (const observe of observers.get(kind) ?? []) {
        try {
          observe(observation as never)
        } catch (error) {
          // An observer's mistake belongs to the program, not to the reader whose turn it is.
          queueMicrotask(() => {
            throw error
          })
        }
      }
    },
  }
}
