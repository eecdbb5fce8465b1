import type { GapReason, RejoinError } from '@rejoin/protocol'

/** Everything that a hub reports. The hub itself logs nothing: a program makes log lines and metrics of these observations. */
export interface HubObservations {
  /** A reader connected. `requested` is the cursor it brought, null for none. */
  connect: ReaderObservation & { requested: string | null; resuming: boolean }
  /**
   * A reader returned with a cursor, resumed, and has caught up. `absenceMs` is the age of the first event that it had missed,
   * null when it had missed none.
   */
  replay: ReaderObservation & { requested: string; replayed: number; elapsedMs: number; absenceMs: number | null }
  /**
   * A reader was told of a gap in these `channels`. `absenceMs` is the age of its cursor when a larger window would have helped,
   * else null. `resuming`: the reader had returned with a cursor and had not caught up, so its resume failed,
   * after it had been sent `replayed` events.
   */
  gap: ReaderObservation & {
    reason: GapReason
    requested: string
    absenceMs: number | null
    resuming: boolean
    replayed: number
  }
  /** The window of a channel is too small for the absences of its readers. Told every ten minutes at most. */
  window: SmallWindow
  /** A reader was given up because it read nothing for too long, with `pending` bytes waiting for it. */
  stall: ReaderObservation & { pending: number }
  /** The answer of a poll was given up with `pending` bytes: its reader took nothing, or others needed the memory. */
  unread: { pending: number }
  /**
   * A stream closed: the reader left, or the hub closed it for `reason`. `cause` is the error behind it, if any. `unfinished`:
   * the reader had returned with a cursor and had not caught up.
   */
  close: ReaderObservation & {
    reason: string
    durationMs: number
    cause: unknown
    unfinished?: UnfinishedReplay | undefined
  }
  /**
   * A reader was rejected. `reason` is a limit, a state of the hub, or the code of an error, such as `unauthorized`. `status` is
   * the status of the answer; with 200, the reader got a stream that closed at once. Also told of a publisher that lacks the
   * right (`unauthorized`, `forbidden`): then `action` says what it wanted to do.
   */
  reject: RejectedReader
  /** While the log was away, an event was published to the readers of this hub alone (`whenDown: 'local'`). */
  local: { channel: string; type: string; id: string; bytes: number; subject: string | null }
  /** The log is back, and the channels that were served without it have been invalidated. */
  healed: { channels: readonly string[] }
  /**
   * The hub has heard nothing from its log for too long, or the log reports a fault (`cause`). The hub closes its streams, so
   * that readers go to other hubs. With `whenDown: 'local'` it keeps them, and serves them without the log (`local`).
   */
  silence: { silentMs: number; cause?: RejoinError; local?: boolean }
  /** The program's own code, such as `authorize`, failed while a request was answered. */
  error: { cause: unknown }
  /**
   * An event was published. `repeated`: nothing was appended, and the answer has the id of an earlier publish with the same key.
   */
  publish: { channel: string; type: string; id: string; bytes: number; subject: string | null; repeated: boolean }
  /** A call of `publish` or `publishBatch` is over. `elapsedMs` has fractions. `error` is undefined when it succeeded. */
  publishCall: { elapsedMs: number; error: unknown }
}

/** A channel whose window is too small for the absences of its readers. */
export interface SmallWindow {
  readonly channel: string
  /** The 99th percentile of the absences, over all channels. */
  readonly absenceMs: number
  /** The rate of this channel, over the events that it holds. */
  readonly eventsPerSecond: number
  readonly has: WindowNeed
  readonly needs: WindowNeed
}

export interface WindowNeed {
  readonly maxAgeMs: number
  readonly maxEvents: number
}

/** A return that ended before the reader had caught up. */
export interface UnfinishedReplay {
  readonly requested: string
  /** True when the reader could resume; null when it left before the hub knew. */
  readonly found: true | null
  readonly replayed: number
}

export interface RejectedReader extends ReaderFacts {
  /** As they were asked for. They may be no valid names. */
  readonly channels: readonly string[]
  readonly reason: string
  readonly status: number
  /** What the requester wanted to do; left out, to read. */
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

/** What a hub has done since it opened. */
export interface Totals {
  /** Events that came from the log. */
  events: number
  /** Events handed to readers. An event for a hundred readers counts a hundred times. */
  deliveries: number
  /** Bytes handed to readers, the frames of the protocol and heartbeats included. */
  bytes: number
}

export interface Observers {
  /** Calls `observe` for each observation of that kind until the returned function is called. */
  on<Kind extends keyof HubObservations>(kind: Kind, observe: (observation: HubObservations[Kind]) => void): () => void
  /** Whether this kind has an observer. Without one, the observation need not be computed. */
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
          // The error of an observer is the program's. It must not end the reader that is being served.
          queueMicrotask(() => {
            throw error
          })
        }
      }
    },
  }
}
